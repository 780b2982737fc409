// What Next.js puts around the page.
export const metadata = { title: 'Next.js', icons: { icon: 'data:,' } };

export default function Layout({ children }) {
  return (
    <html lang="en">
      <body>{children}</body>
    </html>
  );
}
