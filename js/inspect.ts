/** What a model would take and how fast it would be, before it is downloaded: a worker reads the header alone and plans from it. */

import { SluiceError } from './errors.js';
import { checked } from './given.js';
import { type Launched, engineOptions, launch, openRequest } from './launch.js';
import type { ByteSize, EngineOptions, Fit, InspectOptions, ModelCard, ModelSource } from './options.js';
import type { Calls, DeviceRates, News } from './protocol.js';
import { knownRates, rememberRates } from './rates.js';
import type { Client } from './rpc.js';

/**
 * Reads a model's header, never its weights, and says how the model would run with `options`. A model that cannot run is a verdict
 * too (`refused`); what cannot be read, or is no model, rejects with a `SluiceError`. (A server that cannot send parts of a file
 * sends all of it, here as in `open`.)
 */
export async function inspect(source: ModelSource, options: InspectOptions = {}): Promise<Verdict> {
  checked(options).signal?.throwIfAborted();
  return Verdict.connect(launch(options, 'inspect'), source, options);
}

/**
 * The verdict on a model. It keeps its worker, with the header and no weights, so that `plan` answers at once and reads nothing;
 * `close` ends it, and so does the browser some time after the verdict was dropped.
 */
export class Verdict {
  /** What the model is. */
  readonly model: Readonly<ModelCard>;
  /** How it fits with the options that were given to `inspect`. */
  readonly fit: Readonly<Fit>;
  readonly #end: Launched['end'];
  readonly #client: Client<Calls, News>;
  readonly #options: EngineOptions;

  private constructor({ client, end }: Launched, options: EngineOptions, model: ModelCard, fit: Fit) {
    this.model = model;
    this.fit = fit;
    this.#end = end;
    this.#client = client;
    this.#options = options;
    dropped.register(this, end, this);
  }

  /**
   * Inspects a model in a worker that runs already; the worker is ended when that fails.
   * @internal
   */
  static async connect(launched: Launched, source: ModelSource, options: InspectOptions): Promise<Verdict> {
    const { client, build } = launched;
    try {
      const request = { ...openRequest(source, options, build), rates: knownRates() };
      const { card, fit, rates } = await client.call('inspect', request, options.signal);
      rememberRates(rates);
      return new Verdict(launched, request.options, card, fit);
    } catch (error) {
      await launched.end(error);
      throw error;
    }
  }

  /** How the model fits with another budget, or with other options in the place of those given before. Nothing is read again. */
  async plan(change: ByteSize | EngineOptions): Promise<Fit> {
    const options = typeof change === 'object' ? engineOptions(checked(change)) : { memory: change };
    const { fit, rates } = await this.#client.call('refit', { options: { ...this.#options, ...options } });
    return this.#heard(fit, rates);
  }

  /** Ends the worker, and resolves when it has; `model` and `fit` stay, `plan` rejects with `misuse`. */
  close(): Promise<void> {
    dropped.unregister(this);
    return this.#end(closed());
  }

  /** A method, so that a verdict nobody holds lives until its last answer has come. */
  #heard(fit: Fit, rates: DeviceRates): Fit {
    rememberRates(rates);
    return fit;
  }
}

function closed(): SluiceError {
  return new SluiceError('misuse', 'the verdict was closed');
}

/** Ends the workers of verdicts that were dropped without `close`. */
const dropped = new FinalizationRegistry<Launched['end']>((end) => void end(closed()));
