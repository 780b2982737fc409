/** Markdown to elements. Loaded with the first answer. What a model writes is foreign text: it is sanitised, and it loads nothing. */

import DOMPurify from 'dompurify';
import { marked } from 'marked';

DOMPurify.addHook('afterSanitizeAttributes', (element) => {
  if (element instanceof HTMLAnchorElement) {
    element.target = '_blank';
    element.rel = 'noopener noreferrer';
  }
});

/** The text as elements of `target`. Pictures and the like are left out: their addresses could carry the conversation away. */
export function render(target: HTMLElement, text: string): void {
  const html = marked.parse(text, { async: false, gfm: true, breaks: true });
  target.replaceChildren(
    DOMPurify.sanitize(html, {
      RETURN_DOM_FRAGMENT: true,
      ALLOWED_TAGS,
      ALLOWED_ATTR: ['href', 'start', 'align', 'colspan', 'rowspan'],
    }),
  );
  // What may be wider than the page scrolls by itself, also by the keyboard.
  for (const wide of target.querySelectorAll<HTMLElement>('pre')) wide.tabIndex = 0;
}

const ALLOWED_TAGS =
  'a b blockquote br code del em h1 h2 h3 h4 h5 h6 hr i li ol p pre s strong sub sup table tbody td th thead tr ul'.split(' ');
