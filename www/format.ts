/** Numbers as people read them: sizes (decimal, as the package counts them), rates, shares, times. */

/** 98362432 → "98.4 MB". */
export function size(bytes: number): string {
  const [divisor, unit] = bytes < 1e6 ? [1e3, 'kB'] : bytes < 1e9 ? [1e6, 'MB'] : [1e9, 'GB'];
  const value = bytes / divisor;
  return `${value.toFixed(value < 100 && unit !== 'kB' ? (unit === 'GB' ? 2 : 1) : 0)} ${unit}`;
}

/** Every digit: 98362432 → "98,362,432". */
export function exact(count: number): string {
  return Math.round(count).toLocaleString('en-US');
}

/** A share of 1. What is nearly all or nearly nothing is not rounded to it: 0.998 → "99 %". */
export function percent(share: number): string {
  const rounded = Math.round(share * 100);
  if (rounded === 100 && share < 1) return '99 %';
  if (rounded === 0 && share > 0) return '1 %';
  return `${rounded} %`;
}

/** Tokens per second. */
export function speed(tokensPerSecond: number): string {
  return `${tokensPerSecond.toFixed(tokensPerSecond < 10 ? 2 : 1)} tok/s`;
}

/** 75 → "1 min 15 s". */
export function seconds(count: number): string {
  const whole = Math.ceil(count);
  if (whole < 60) return `${whole} s`;
  const minutes = Math.floor(whole / 60);
  return minutes < 60 ? `${minutes} min ${whole % 60} s` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

/** 135000000 → "135 M". */
export function amount(count: number): string {
  return count < 1e9 ? `${(count / 1e6).toFixed(0)} M` : `${(count / 1e9).toFixed(1)} B`;
}

/** What a download or another stage has done, with its rate and what is left. */
export function progress(loadedBytes: number, totalBytes: number, bytesPerSecond: number, secondsLeft: number | null): string {
  const parts = [`${size(loadedBytes)} of ${size(totalBytes)}`];
  if (bytesPerSecond > 0) parts.push(`${size(bytesPerSecond)}/s`);
  if (secondsLeft !== null && loadedBytes < totalBytes) parts.push(`${seconds(secondsLeft)} left`);
  return parts.join(' · ');
}
