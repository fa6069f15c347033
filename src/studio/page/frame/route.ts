import { encoded } from './api.ts';
import { shared } from './shared.ts';

/** A view, by its address: `#/run/<id>/transcript?label=a`. */
interface Place {
  /** `runs`, `run`, `inbox`, … */
  readonly view: string;
  /** The id of the thing that is shown, decoded; '' for none. */
  readonly id: string;
  /** A part of the view; '' for its first one. */
  readonly part: string;
  readonly query: URLSearchParams;
}

/** What is shown now. */
export const place = shared<Place>(read());

addEventListener('hashchange', () => place.set(read()));

function read(): Place {
  const [path = '', query = ''] = location.hash.slice(1).split('?', 2);
  const [, view = '', id = '', part = ''] = path.split('/');
  return { view: view || 'runs', id: decoded(id), part, query: new URLSearchParams(query) };
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** Makes the address of a view. */
export function addressOf(view: string, id = '', part = ''): string {
  return `#/${[view, ...(id === '' ? [] : [encoded(id)]), ...(part === '' ? [] : [part])].join('/')}`;
}

/** Shows another view. */
export function show(address: string): void {
  location.hash = address;
}

/** Changes the query of the address without a step in the history. */
export function setQuery(query: URLSearchParams): void {
  const [path] = location.hash.split('?', 1);
  const text = query.toString();
  history.replaceState(null, '', text === '' ? path : `${path}?${text}`);
  place.set(read());
}
