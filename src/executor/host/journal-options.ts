import { checkKeys, kindOf } from '../../values/known-options.ts';

/** How an executor keeps the events of its runs for readers in any process. */
export interface JournalOptions {
  /** How long an event may wait until it is published. */
  readonly flushMs: number;
  /** About how many bytes may wait. */
  readonly flushBytes: number;
}

/** How an executor writes the journals of its runs. */
export interface Journaling extends JournalOptions {
  /** How long the journal of an ended run can be read, ms. */
  readonly lingerMs: number;
  /** No reader follows the run: events that are only of interest while they happen are left out. */
  readonly isDurableOnly?: true;
}

/** The value of the option `journal`: `true` = with the defaults. */
export type JournalOption = boolean | Partial<JournalOptions>;

export const journalDefaults: JournalOptions = { flushMs: 100, flushBytes: 4_096 };

const keys = { flushMs: true, flushBytes: true } as const;
const earlierKeys = { lingerMs: 'retention.events takes this time' } as const;

/** Reads the option `journal`; undefined = no journal. @throws {TypeError} */
export function journalOptionsOf(given: JournalOption | undefined): JournalOptions | undefined {
  if (given === undefined || given === false) return undefined;
  if (given === true) return journalDefaults;
  if (typeof given !== 'object' || given === null)
    throw new TypeError(`createExecutor: journal must be true, false or its options, not ${kindOf(given)}`);
  checkKeys(given, keys, { of: 'createExecutor', at: 'journal', foreign: earlierKeys });
  const options = {
    ...journalDefaults,
    ...Object.fromEntries(Object.entries(given).filter(([, v]) => v !== undefined)),
  };
  for (const [name, value] of Object.entries(options)) {
    if (typeof value !== 'number' || !(value >= 0) || (name === 'flushBytes' && value === 0))
      throw new TypeError(`createExecutor: journal.${name} must be a number above 0, not ${kindOf(value)}`);
  }
  return options;
}
