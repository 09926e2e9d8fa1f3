/**
 * The port of the feed: which runs have new events. One blocking read per shard and API process, however many readers.
 */

export interface FeedNotice { readonly run_id: string; readonly last_seq: number }

export interface EventFeed {
  /**
   * Calls `onNotice` for every append from now on. `onGap` says that notices may have been lost (a reconnect, a trimmed feed):
   * every reader must look for itself. Ends when `signal` aborts; survives lost connections.
   */
  follow(handlers: { readonly onNotice: (notice: FeedNotice) => void; readonly onGap: () => void }, signal: AbortSignal): Promise<void>;
}
