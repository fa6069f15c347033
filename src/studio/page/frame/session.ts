// The token of this Studio. It arrives in the fragment of the address, which no server gets, and leaves it at once.
import { inTab, keep, kept } from './kept.ts';

const KEPT = 'pawl-studio-token';
const ASK_MS = 300;

const CHANNEL = `${KEPT}:${location.pathname}`;

let token: string | null = null;
/** Whether the server has taken it: any page can open this one with a token of its own making. */
let isProven = false;

/** The server has taken the token: other tabs may have it. */
export function tokenIsTaken(): void {
  if (isProven || token === null) return;
  isProven = true;
  // A new tab sees by this lock that it can ask.
  navigator.locks?.request(CHANNEL, { mode: 'shared' }, () => new Promise(() => {}));
}

/** The headers that name the reader; none for a Studio behind a login of its own. */
export function ownHeaders(): Record<string, string> {
  return token === null ? {} : { authorization: `Bearer ${token}` };
}

/** Takes the token from the address, from this tab's memory, or from another open tab. */
export async function takeToken(): Promise<void> {
  const given = /^#token=([\w-]{1,200})$/.exec(location.hash)?.[1];
  if (given !== undefined) {
    keep(inTab, KEPT, given);
    history.replaceState(null, '', `${location.pathname}#/runs`);
  }
  token = given ?? kept(inTab, KEPT);
  const channel = new BroadcastChannel(CHANNEL);
  if (token === null && (await isThereAnother())) token = await askOtherPages(channel);
  if (token !== null) keep(inTab, KEPT, token);
  channel.addEventListener('message', ({ data }) => {
    if (data === 'ask' && token !== null && isProven) channel.postMessage({ token });
  });
}

/** Whether another tab may have a token. Only a secure page has locks. */
async function isThereAnother(): Promise<boolean> {
  const { held } = (await navigator.locks?.query()) ?? {};
  return held?.some(({ name }) => name === CHANNEL) ?? true;
}

/** Null if no other tab answers. */
function askOtherPages(channel: BroadcastChannel): Promise<string | null> {
  return new Promise((resolve) => {
    const timer = setTimeout(() => resolve(null), ASK_MS);
    channel.addEventListener('message', ({ data }) => {
      if (typeof data?.token !== 'string') return;
      clearTimeout(timer);
      resolve(data.token);
    });
    channel.postMessage('ask');
  });
}
