// The few WebDriver commands that driving WebKit takes, as plain HTTP calls (https://www.w3.org/TR/webdriver2/).

/** A WebDriver error: `code` is the protocol's, such as `no such element`. */
export class WebDriverError extends Error {
  constructor({ error, message }) {
    super(`${error}: ${message}`);
    this.code = error;
  }
}

/** The key under which the protocol names an element. */
export const ELEMENT = 'element-6066-11e4-a52e-4f735466cecf';

/** Sends one command to a driver and returns its value. */
export async function command(origin, method, path, body) {
  const init =
    method === 'POST'
      ? { method, body: JSON.stringify(body ?? {}), headers: { 'content-type': 'application/json' } }
      : { method };
  const response = await fetch(`${origin}${path}`, init);
  const { value } = await response.json();
  if (!response.ok) throw new WebDriverError(value);
  return value;
}
