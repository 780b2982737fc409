// What Next.js is told.
export default {
  // Only for this test: the workspace is a folder of the repository.
  turbopack: { root: import.meta.dirname },
};
