/**
 * What was measured on this device: known for the life of the page, and from visit to visit where the browser keeps things for us
 * (not in a worker, and not where a private window forbids it).
 */

import type { DeviceRates, KernelRates } from './protocol.js';

/** What is known: measured in this page, or in an earlier visit that is not long ago. */
export function knownRates(): DeviceRates {
  return (known ??= recall());
}

/** Adds what was measured. */
export function rememberRates({ kernels, storage }: DeviceRates): void {
  const before = knownRates();
  const grown = { kernels: { ...before.kernels, ...kernels }, storage: { ...before.storage, ...storage } };
  const changed = JSON.stringify(grown) !== JSON.stringify(before);
  known = grown;
  if (!changed) return;
  const kept: Kept = { browser: browserName(), measured: Date.now(), ...grown };
  try {
    globalThis.localStorage.setItem(KEY, JSON.stringify(kept));
  } catch {
    // No storage, or none for us: it is measured again at the next visit.
  }
}

/** Forgets what the page knows, not what the browser keeps. */
export function forgetRates(): void {
  known = undefined;
}

/** As it is stored: figures of one browser, with the time of the latest. */
interface Kept extends DeviceRates {
  browser: string;
  measured: number;
}

let known: DeviceRates | undefined;

function recall(): DeviceRates {
  try {
    const kept: unknown = JSON.parse(globalThis.localStorage.getItem(KEY) ?? 'null');
    if (isKept(kept)) return { kernels: kept.kernels, storage: kept.storage };
  } catch {
    // The same, or what is there is not ours.
  }
  return { kernels: {}, storage: {} };
}

/** Whoever shares the origin can write there, and another version of the browser may be faster. */
function isKept(value: unknown): value is Kept {
  if (!isRecord(value) || value['browser'] !== browserName() || !isRecord(value['kernels']) || !isRecord(value['storage']))
    return false;
  const age = Date.now() - Number(value['measured']);
  const { kernels, storage } = value;
  return age >= 0 && age < KEPT_MS && Object.values(kernels).every(isKernelRates) && Object.values(storage).every(isRate);
}

function isKernelRates(value: unknown): value is KernelRates {
  return isRecord(value) && isRate(value['decodeWeightsPerSecond']) && isRate(value['prefillWeightsPerSecond']);
}

function isRate(value: unknown): value is number {
  return typeof value === 'number' && Number.isFinite(value) && value > 0;
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function browserName(): string {
  return globalThis.navigator?.userAgent ?? '';
}

const KEY = 'sluice-rates';
/** A device changes with its software and its age. */
const KEPT_MS = 30 * 24 * 3600 * 1000;
