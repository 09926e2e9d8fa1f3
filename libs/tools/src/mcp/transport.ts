/** What a connection needs of a transport beside the SDK's own interface. */
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js';

export interface McpTransport extends Transport {
  /** What the server said last beside the protocol, for people; empty where it cannot be heard. */
  lastWords(): string;
  /** No new message will be sent: ends as soon as nothing is under way any more. */
  retire(): void;
  /** At once and without waiting; for the end of this process. */
  killNow(): void;
}
