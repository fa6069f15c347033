/** What a `ClientError` holds besides its message. */
export interface ClientErrorFacts {
  readonly code: string;
  readonly status?: number;
  readonly retry?: 'never' | 'later';
  readonly retryAfterMs?: number | undefined;
  readonly cause?: unknown;
}

/**
 * A request that failed, or a stream that cannot continue. Compare `code`: it is the server's own code (`JOURNAL_GONE`,
 * `WAIT_GONE`, `THREAD_BUSY`), or one of the client's: `UNREACHABLE` (no answer), `TIMEOUT` (no answer in time),
 * `BAD_RESPONSE` (an answer that is not Pawl's), `TOO_LARGE` (an event or an answer beyond `maxBytes`), `UNAUTHORIZED`,
 * `FORBIDDEN`, `NOT_FOUND`, or `HTTP_` and the status.
 * @example
 * try { await client.run(id).get(); } catch (error) { if (error.code === 'NOT_FOUND') showMissing(); else throw error; }
 */
export class ClientError extends Error {
  readonly code: string;
  /** The HTTP status; 0 if there was no answer. */
  readonly status: number;
  /** `later`: the same request may succeed at another time, unchanged. */
  readonly retry: 'never' | 'later';
  /** The time after which the server allows another try, ms; absent if it named none. */
  readonly retryAfterMs?: number;

  constructor(message: string, { code, status = 0, retry = 'never', retryAfterMs, cause }: ClientErrorFacts) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = 'ClientError';
    this.code = code;
    this.status = status;
    this.retry = retry;
    if (retryAfterMs !== undefined) this.retryAfterMs = retryAfterMs;
  }
}
