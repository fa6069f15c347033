import { RestateServer } from '../../docs/examples/restate/restate-server.ts';

/** What Restate keeps of an invocation. */
export interface Journal {
  /** The bytes of all its entries. */
  readonly bytes: number;
  /** The entries, as text. */
  readonly text: string;
}

/** A Restate that tests look into, and whose invocations they end. */
export class WatchedServer extends RestateServer {
  /** Lets the journals of a service stay, so that they can be read. */
  async keepJournals(service: string): Promise<void> {
    await this.#admin('PATCH', `services/${service}`, { journal_retention: '1h' });
  }

  async journalOf(invocationId: string): Promise<Journal> {
    const rows = await this.query(`select raw, raw_length from sys_journal where id = '${invocationId}'`);
    const bytes = rows.reduce((sum, row) => sum + Number(row.raw_length), 0);
    return { bytes, text: rows.map(({ raw }) => String(Buffer.from(String(raw), 'hex'))).join('\n') };
  }

  /** The values of a name in the states of all objects of a service. */
  async stateOf(service: string, name: string): Promise<readonly unknown[]> {
    const rows = await this.query(`select value_utf8 from state where service_name = '${service}' and key = '${name}'`);
    return rows.map(({ value_utf8 }) => value_utf8);
  }

  /** The settings of a service. */
  async service(name: string): Promise<unknown> {
    return this.#admin('GET', `services/${name}`);
  }

  /** Removes a deployment. @returns whether Restate needs it no more */
  async remove(deployment: string): Promise<boolean> {
    await this.#admin('DELETE', `deployments/${deployment}?force=true`);
    return true;
  }

  async end(invocationId: string, how: 'cancel' | 'kill'): Promise<void> {
    await this.#admin('PATCH', `invocations/${invocationId}/${how}`);
  }

  async #admin(method: string, path: string, body?: unknown): Promise<unknown> {
    const json =
      body === undefined ? {} : { headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) };
    const answer = await fetch(`${this.admin}/${path}`, { method, ...json });
    const text = await answer.text();
    if (!answer.ok) throw new Error(`${answer.status} ${text}`);
    return text === '' ? undefined : JSON.parse(text);
  }
}
