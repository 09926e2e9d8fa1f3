/**
 * What the API needs to know when something behind it is away: whether a command may still have happened.
 * Adapters throw whatever their client library throws; the words of those errors are known here and nowhere else.
 */
import { StoreAway } from '@treadle/engine';

/** The store did not answer. `sent` says whether the command had left this process: then its outcome is unknown. */
export class StoreUnavailable extends Error {
  readonly sent: boolean;

  constructor(message: string, options: { readonly sent: boolean; readonly cause?: unknown }) {
    super(message, { cause: options.cause });
    this.name = 'StoreUnavailable';
    this.sent = options.sent;
  }
}

/** The archive did not answer; the API only reads there. */
export class ArchiveUnavailable extends Error {
  constructor(message: string, options: { readonly cause?: unknown } = {}) {
    super(message, options);
    this.name = 'ArchiveUnavailable';
  }
}

/** Said by the client before anything was written to the connection. */
const beforeSending = [/enableOfflineQueue options is false/i, /None of startup nodes is available/i, /ECONNREFUSED/, /ENOTFOUND/, /EAI_AGAIN/, /All sentinels are unreachable/i, /connect ETIMEDOUT/i];

/** Answers of a Redis that refuses to write, or to work at all, at a script's first write: nothing has happened. */
const refused = /\b(OOM command not allowed|LOADING |READONLY |MISCONF |NOREPLICAS |MASTERDOWN |CLUSTERDOWN |TRYAGAIN |MOVED |ASK |BUSY |NOAUTH |max number of clients)/;

/** The connection was lost, or the answer did not come in time, after the command had been written to it. */
const afterSending = [
  /^Command timed out/i, /^Connection is closed/i, /max retries per request/i, /ECONNRESET/, /EPIPE/, /ETIMEDOUT/, /EHOSTUNREACH/, /Socket closed/i,
  /Socket timeout/i, /^UNBLOCKED/, /^Too many Cluster redirections/, /^Failed to refresh slots cache/, /^Cluster is ended/, /write after end/i, /stream was destroyed/i,
];

/** Whether a failed command may have reached the store. Errors that nobody knows count as sent. */
export function isSent(error: unknown): boolean {
  if (error instanceof StoreUnavailable) return error.sent;
  const text = textOf(error);
  // Says only how the last of several tries ended.
  if (/^Too many Cluster redirections/.test(text)) return true;
  return !refused.test(text) && !beforeSending.some((form) => form.test(text));
}

/** `error` as `StoreUnavailable` where it says that the store is away; null where it is a fault of ours. */
export function storeUnavailable(error: unknown): StoreUnavailable | null {
  if (error instanceof StoreUnavailable) return error;
  const text = textOf(error);
  const known = error instanceof StoreAway || refused.test(text) || [...beforeSending, ...afterSending].some((form) => form.test(text));
  return known ? new StoreUnavailable('the store did not answer', { sent: isSent(error), cause: error }) : null;
}

/** A system error carries its reason in `code`, and in some versions nowhere else. */
function textOf(error: unknown): string {
  if (!(error instanceof Error)) return '';
  const code = 'code' in error && typeof error.code === 'string' ? error.code : '';
  return code === '' || error.message.includes(code) ? error.message : `${error.message} ${code}`;
}
