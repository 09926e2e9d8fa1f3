/** How the test MCP server is started: what stands in the configuration's place for a real one. */
import { fileURLToPath } from 'node:url';

export interface TestMcpOptions {
  /** Where calls are recorded. */
  readonly ledgerFile: string;
  readonly trusted?: boolean;
  readonly concurrency?: number;
  /** Switches of `mcp-server.ts`. */
  readonly env?: Readonly<Record<string, string>>;
}

/** As an entry of `mcp_servers`. */
export interface TestMcpServer {
  readonly command: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly trusted: boolean;
  readonly concurrency: number;
}

export function testMcpServer({ ledgerFile, trusted = true, concurrency = 8, env = {} }: TestMcpOptions): TestMcpServer {
  const script = fileURLToPath(new URL('./mcp-server.ts', import.meta.url));
  return { command: process.execPath, args: [script], env: { ...env, LEDGER_FILE: ledgerFile }, trusted, concurrency };
}
