export interface ToolRunnerOptions {
  /** For tools that state none. Default 30,000. */
  readonly defaultTimeoutMs?: number;
  /** How long a function may go on after its signal has aborted before it is left behind. Default 2,000. */
  readonly graceMs?: number;
  /** For starting an MCP server and its handshake, and for its whole tool list. Default 20,000. */
  readonly connectTimeoutMs?: number;
  /** How long a turn waits for a changed list of an MCP server; a list that comes later is looked at by a later turn. Default 1,000. */
  readonly changesWaitMs?: number;
  /** First pause before an MCP server that failed twice in a row is started again; doubles up to 30 s. Default 250. */
  readonly backoffMs?: number;
  /** How long a caller waits for that pause before it is told that the server is down. Default 5,000. */
  readonly maxBackoffWaitMs?: number;
  /** Largest message an MCP server may send, in bytes; a larger one ends the connection. Default 32 MiB. */
  readonly maxMessageBytes?: number;
  /** Largest body of an HTTP answer that is read, in bytes; the rest is left. Default 4 MiB. */
  readonly maxResponseBytes?: number;
}

export type CompleteOptions = Required<ToolRunnerOptions>;

export function completeOptions(options: ToolRunnerOptions): CompleteOptions {
  return {
    defaultTimeoutMs: 30_000, graceMs: 2_000, connectTimeoutMs: 20_000, changesWaitMs: 1_000, backoffMs: 250, maxBackoffWaitMs: 5_000, maxMessageBytes: 32 * 1024 * 1024,
    maxResponseBytes: 4 * 1024 * 1024,
    ...options,
  };
}
