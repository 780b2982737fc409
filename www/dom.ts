/** Finding and making elements. */

/** The element of this id, which the page has. */
export function byId<T extends HTMLElement>(id: string, type: new () => T): T {
  const found = document.getElementById(id);
  if (found instanceof type) return found;
  throw new Error(`the page has no ${id}`);
}

type Properties<K extends keyof HTMLElementTagNameMap> = Partial<Omit<HTMLElementTagNameMap[K], 'style' | 'dataset'>>;

/** Makes an element: its properties, then what is in it. */
export function make<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  properties: Properties<K> = {},
  ...children: (Node | string)[]
): HTMLElementTagNameMap[K] {
  const element = Object.assign(document.createElement(tag), properties);
  element.append(...children);
  return element;
}

/** A button that does something. */
export function button(label: string, onClick: () => void, properties: Properties<'button'> = {}): HTMLButtonElement {
  const element = make('button', { type: 'button', ...properties }, label);
  element.addEventListener('click', onClick);
  return element;
}

/** What a list of figures says; only what changed is touched, so that a selection or a reader's place stays. */
export function showFigures(list: HTMLElement, figures: readonly (readonly [name: string, value: string])[]): void {
  if (list.children.length !== figures.length) {
    list.replaceChildren(...figures.map(() => make('div', {}, make('dt'), make('dd'))));
  }
  for (const [index, texts] of figures.entries()) {
    for (const [part, text] of texts.entries()) {
      const element = list.children[index]?.children[part];
      if (element !== undefined) setText(element, text);
    }
  }
}

/** Sets a text where it differs. */
export function setText(element: Element, text: string): void {
  if (element.textContent !== text) element.textContent = text;
}

/** A colour of the style sheet as the page has it now; the custom property alone says what it is in both themes. */
export function colourOf(name: string): string {
  const probe = make('span');
  probe.style.color = `var(--${name})`;
  document.body.append(probe);
  const { color } = getComputedStyle(probe);
  probe.remove();
  return color;
}
