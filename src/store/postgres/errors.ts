import { PawlError } from '../../values/error-codes.ts';
import {
  CheckpointCorruptError,
  RecordTooLargeError,
  StoreFullError,
  StoreUnavailableError,
} from '../../values/errors.ts';

/** The codes of PostgreSQL (SQLSTATE) that this store handles. */
const code = {
  twice: '23505',
  serialization: '40001',
  deadlock: '40P01',
  noStatement: '26000',
  statementExists: '42P05',
  readOnly: '25006',
  noTable: '42P01',
  noColumn: '42703',
  tableExists: '42P07',
  noRights: '42501',
  noDatabase: '3D000',
  diskFull: '53100',
  outOfMemory: '53200',
  tooManyConnections: '53300',
  programLimit: '54000',
  locked: '55P03',
  cancelled: '57014',
  dataCorrupted: 'XX001',
  indexCorrupted: 'XX002',
} as const;

const advice: Readonly<Record<string, string>> = {
  [code.readOnly]: 'it takes no writes (a standby?); connect to the primary',
  [code.noTable]: 'its tables are not all there; restore them, or drop what is left of the schema',
  [code.noColumn]: 'it has tables of something else; choose another schema',
  [code.tableExists]: 'it has tables of something else; choose another schema',
  [code.noRights]: 'the role lacks rights; it must own the schema, or be able to create it',
  [code.noDatabase]: 'the database does not exist; create it',
  [code.tooManyConnections]: 'the server has no connection left; make the pool smaller or max_connections larger',
};

/** Transient errors: the server is starting, stopping or overloaded, or another transaction was in the way. */
const passing: ReadonlySet<string> = new Set([
  // Two saves drew the same random number.
  code.twice,
  code.serialization,
  code.deadlock,
  code.readOnly,
  code.outOfMemory,
  code.tooManyConnections,
  code.locked,
  code.cancelled,
]);

/** The error of a PostgreSQL pool or server that did not answer in time. */
export class NoAnswer extends Error {}

/** SQLSTATE; errors of the operating system have a code too, but no severity. */
function stateOf(error: unknown): string | undefined {
  const { code: state, severity } = (error ?? {}) as { code?: unknown; severity?: unknown };
  return typeof state === 'string' && typeof severity === 'string' ? state : undefined;
}

/**
 * Returns whether an error of PostgreSQL leaves the connection lost. It is unknown whether the connection still works, and
 * whether the last statement was executed.
 */
export function isConnectionLost(error: unknown): boolean {
  const state = stateOf(error);
  // 08: connection exceptions; 57P: the server is going down or coming up.
  if (state !== undefined) return state.startsWith('08') || state.startsWith('57P');
  return !(error instanceof PawlError);
}

/**
 * Returns whether an error of PostgreSQL may pass: a retry over another connection may help. The request may have been
 * executed all the same: a retry must check first.
 */
export function isTransient(error: unknown): boolean {
  if (error instanceof Error && error.message.includes('after calling end on the pool')) return false;
  return isConnectionLost(error) || passing.has(stateOf(error) ?? '');
}

/** Returns whether an error of PostgreSQL would fail every other write as well. */
export function isGroupFailure(error: unknown): boolean {
  return error instanceof PawlError || stateOf(error) === code.diskFull || stateOf(error) === code.noRights;
}

/**
 * Returns whether the PostgreSQL server has lost a prepared statement. A statement was not executed, because the server's
 * connection does not know its name, or knows it with another text.
 */
export function isStatementLost(error: unknown): boolean {
  const state = stateOf(error);
  return state === code.noStatement || state === code.statementExists;
}

/** Returns whether an error of PostgreSQL says that the tables have disappeared. */
export function isTableMissing(error: unknown): boolean {
  return stateOf(error) === code.noTable;
}

/** Converts an error of the server or of the driver for a store's caller. @param what names the store */
export function serverError(error: unknown, what: string): unknown {
  if (error instanceof PawlError) return error;
  const state = stateOf(error);
  const options = { cause: state === undefined ? error : withoutDetails(error as Error, state) };
  if (state === code.diskFull) {
    return new StoreFullError(`the disk of ${what} is full; make room, what is stored is intact`, options);
  }
  if (state === code.programLimit) return new RecordTooLargeError(`a text is too long for ${what}`, options);
  if (state === code.dataCorrupted || state === code.indexCorrupted) {
    return new CheckpointCorruptError(`pages of ${what} are damaged; take a backup before anything else`, options);
  }
  const reason = advice[state ?? ''] ?? (error instanceof Error ? error.message : String(error));
  return new StoreUnavailableError(`${what} is not available: ${reason}`, options);
}

/** The details that the server adds may quote the row: texts of a transcript must not get into logs this way. */
function withoutDetails({ message, name }: Error, state: string): Error {
  return Object.assign(new Error(message), { name, code: state });
}

/**
 * Refuses tables that do more than store what is written: a trigger, a rule or a view in the place of one could change or drop a
 * write that was reported as stored. Views of a host beside the tables are its own business. Refuses operators that statements
 * would find in place of PostgreSQL's: with another `<` a lease never ends, or at once.
 */
export function refuseMeddling(found: Readonly<Record<string, unknown>>, schema: string): void {
  if (found.operator != null) {
    const what = `the search_path of its connections finds the operator ${found.operator} in place of PostgreSQL's`;
    const todo = `drop it, or give these connections a search_path without the schema ${found.place}`;
    throw new StoreUnavailableError(`the PostgreSQL store in schema ${schema} cannot be used: ${what}: ${todo}`);
  }
  if (found.relation == null) return;
  const table = `${schema}.${found.relation}`;
  const what =
    found.other === 'true'
      ? `${table} is no table; Pawl keeps its records in tables: put the table back, or choose another schema`
      : `${table} has the ${found.trigger ? `trigger ${found.trigger}` : `rule ${found.rule}`}, which may change what is stored: drop it`;
  throw new StoreUnavailableError(`the PostgreSQL store cannot be used: ${what}`);
}

/** Finds what does more with the tables of a schema, $1, by their names, $2. */
const MORE_THAN_TABLES = `SELECT c.relname AS relation, t.tgname AS trigger, r.rulename AS rule, (c.relkind NOT IN ('r', 'p'))::pg_catalog.text AS other
  FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
  LEFT JOIN pg_catalog.pg_trigger t ON t.tgrelid = c.oid AND NOT t.tgisinternal
  LEFT JOIN pg_catalog.pg_rewrite r ON r.ev_class = c.oid
  WHERE n.nspname = $1 AND c.relname = ANY ($2::pg_catalog.text[])
    AND (t.oid IS NOT NULL OR r.oid IS NOT NULL OR c.relkind NOT IN ('r', 'p'))`;

/** The operators of the statements. */
const OPERATORS = `ARRAY['=', '<>', '<', '<=', '>', '>=', '+', '-', '*', '/', '||']::pg_catalog.name[]`;

/**
 * Finds an operator of another schema that a statement of the store would call: of the same types as one of PostgreSQL, or for
 * two numbers. Functions are named with their schema; operators named so would make every statement hard to read.
 */
const FOREIGN_OPERATORS = `SELECT n.nspname AS place, pg_catalog.format('%s.%s(%s, %s)', n.nspname, o.oprname,
    pg_catalog.format_type(o.oprleft, NULL), pg_catalog.format_type(o.oprright, NULL)) AS operator
  FROM pg_catalog.pg_operator o JOIN pg_catalog.pg_namespace n ON n.oid OPERATOR(pg_catalog.=) o.oprnamespace
  WHERE n.nspname OPERATOR(pg_catalog.<>) 'pg_catalog' AND o.oprname OPERATOR(pg_catalog.=) ANY (${OPERATORS})
    AND pg_catalog.pg_operator_is_visible(o.oid)
    AND (EXISTS (SELECT FROM pg_catalog.pg_operator p WHERE p.oprnamespace OPERATOR(pg_catalog.=) 'pg_catalog'::pg_catalog.regnamespace
        AND p.oprname OPERATOR(pg_catalog.=) o.oprname AND p.oprleft OPERATOR(pg_catalog.=) o.oprleft
        AND p.oprright OPERATOR(pg_catalog.=) o.oprright)
      OR (SELECT pg_catalog.count(*) FROM pg_catalog.pg_type t WHERE t.oid OPERATOR(pg_catalog.=) ANY (ARRAY[o.oprleft, o.oprright])
        AND (t.typcategory OPERATOR(pg_catalog.<>) 'N' OR t.typnamespace OPERATOR(pg_catalog.<>) 'pg_catalog'::pg_catalog.regnamespace))
        OPERATOR(pg_catalog.=) 0)`;

/** One row: what meddles with the tables of a schema, $1, by their names, $2, or with the statements on them. */
export const MEDDLING = `(SELECT * FROM (SELECT) one
  LEFT JOIN (${MORE_THAN_TABLES} LIMIT 1) t ON true LEFT JOIN (${FOREIGN_OPERATORS} LIMIT 1) o ON true)`;
