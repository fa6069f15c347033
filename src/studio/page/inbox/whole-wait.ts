import { useState } from 'preact/hooks';
import type { JsonValue, ValuePage, WaitLine, WaitPart } from '../../wire.ts';
import { type ApiAnswer, get, pathOfApi, type Trouble } from '../frame/api.ts';
import { words } from '../frame/words.ts';

type Parts = { readonly [part in WaitPart]?: JsonValue };

/** A wait with the long parts that a person asked for. */
export function useWhole<W extends WaitLine>(wait: W) {
  const [loaded, setLoaded] = useState<Parts>({});
  const [trouble, setTrouble] = useState<Pick<Trouble, 'code' | 'message'>>();
  const load = async (part: WaitPart) => {
    const read = await readPart(wait, part);
    setTrouble(read.trouble);
    if (!read.trouble) setLoaded((before) => ({ ...before, [part]: read.value }));
  };
  const long = Object.fromEntries(Object.entries(wait.long ?? {}).filter(([part]) => !(part in loaded)));
  return { whole: { ...wait, ...loaded, long } as W & Parts, load, trouble };
}

type Read =
  | { readonly value: JsonValue; readonly trouble?: undefined }
  | { readonly trouble: Pick<Trouble, 'code' | 'message'> };

/** Reads a part in pieces: one answer of a server is never long. */
async function readPart({ runId, long }: WaitLine, part: WaitPart): Promise<Read> {
  const path = `${pathOfApi('runs', runId, 'value')}?${long?.[part]?.at}&from=`;
  let text = '';
  for (let from: string | undefined = '0'; ; ) {
    const answer: ApiAnswer<ValuePage> = await get(path + from);
    if (answer.trouble) return answer;
    const { kind, ...page } = answer.value;
    text += page.text;
    from = page.next;
    if (from !== undefined) continue;
    try {
      return { value: kind === 'text' ? text : (JSON.parse(text) as JsonValue) };
    } catch {
      return { trouble: { code: 'CHANGED', message: words.stages?.reload ?? '' } };
    }
  }
}
