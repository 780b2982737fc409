/** The dial's scale: places of a slider ↔ bytes of memory, from the least that runs a model to all of its weights in memory. */

/** Places of the slider, 0 to this. */
export const PLACES = 200;

/** The two ends in bytes. */
export interface Scale {
  readonly floorBytes: number;
  readonly fullBytes: number;
}

/** Is there anything to choose? */
export function isFree({ floorBytes, fullBytes }: Scale): boolean {
  return fullBytes - floorBytes >= STEP_BYTES;
}

/** The budget at a place: whole steps, so that a place says the same bytes each time, and never less than the floor. */
export function bytesAt({ floorBytes, fullBytes }: Scale, place: number): number {
  if (place <= 0) return floorBytes;
  if (place >= PLACES) return fullBytes;
  const bytes = floorBytes + ((fullBytes - floorBytes) * place) / PLACES;
  return Math.min(fullBytes, Math.ceil(bytes / STEP_BYTES) * STEP_BYTES);
}

/** The place that is nearest to a budget. */
export function placeOf({ floorBytes, fullBytes }: Scale, bytes: number): number {
  if (fullBytes <= floorBytes) return PLACES;
  const place = ((bytes - floorBytes) / (fullBytes - floorBytes)) * PLACES;
  return Math.round(Math.min(PLACES, Math.max(0, place)));
}

const STEP_BYTES = 100_000;
