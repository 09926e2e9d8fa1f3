export { readLedger, writeLedger, type LedgerLine, type LedgerPhase } from './ledger.ts';
export { ledgerTools, type LedgerTool, type LedgerToolContext } from './ledger-tools.ts';
export { testMcpServer, type TestMcpOptions, type TestMcpServer } from './test-mcp-server.ts';
export { startHttpMcpServer, type HttpMcpOptions, type HttpMcpServer } from './http-mcp-server.ts';
