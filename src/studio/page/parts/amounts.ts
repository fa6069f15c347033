// Numbers and times as a person reads them.

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** `30.8k`. */
export function short(count: number): string {
  if (count < 1_000) return String(count);
  if (count < 1_000_000) return `${(count / 1_000).toFixed(1)}k`;
  return `${(count / 1_000_000).toFixed(1)}M`;
}

/** `30,756`. */
export function whole(count: number): string {
  return count.toLocaleString('en');
}

/** `0.0611`. */
export function usd(amount: number): string {
  return amount.toFixed(amount >= 100 ? 2 : 4);
}

/** `148 KB`. */
export function size(bytes: number): string {
  if (bytes < 1_000) return `${bytes} B`;
  return bytes < 1_000_000 ? `${Math.round(bytes / 1_000)} KB` : `${(bytes / 1_000_000).toFixed(1)} MB`;
}

/** A short age, for a column: `4m`. */
export function age(ms: number): string {
  if (ms < 1_000) return 'now';
  if (ms < MINUTE) return `${Math.floor(ms / 1_000)}s`;
  if (ms < HOUR) return `${Math.floor(ms / MINUTE)}m`;
  return ms < DAY ? `${Math.floor(ms / HOUR)}h` : `${Math.floor(ms / DAY)}d`;
}

/** `1st`, `22nd`, `113th`. */
export function ordinal(rank: number): string {
  const isTeen = rank % 100 > 10 && rank % 100 < 14;
  return `${rank}${(isTeen ? undefined : ['th', 'st', 'nd', 'rd'][rank % 10]) ?? 'th'}`;
}

/** A duration in words: `86 ms`, `4.9 s`, `4 m 12 s`, `2 d 4 h`. */
export function span(ms: number): string {
  if (ms < 1_000) return `${Math.max(0, Math.round(ms))} ms`;
  if (ms < MINUTE) return `${(ms / 1_000).toFixed(1)} s`;
  if (ms < HOUR) return `${Math.floor(ms / MINUTE)} m ${Math.floor((ms % MINUTE) / 1_000)} s`;
  if (ms < DAY) return `${Math.floor(ms / HOUR)} h ${Math.floor((ms % HOUR) / MINUTE)} m`;
  return `${Math.floor(ms / DAY)} d ${Math.floor((ms % DAY) / HOUR)} h`;
}

/** A time of today as `12:04:09`, of another day with its date. */
export function clockTime(at: number, now = Date.now()): string {
  const time = new Date(at);
  const text = time.toLocaleTimeString('en-GB');
  return time.toDateString() === new Date(now).toDateString()
    ? text
    : `${time.toLocaleDateString('en-GB', { day: 'numeric', month: 'short' })} ${text.slice(0, 5)}`;
}
