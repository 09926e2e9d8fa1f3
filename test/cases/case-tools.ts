/**
 * An MCP server over stdio with the tools that the cases ask for: `node case-tools.ts`. Written on the bare protocol, since some
 * of its answers are such as no library would send. Records every call in the file that `LEDGER_FILE` names: one line when it
 * starts, one when it ends or is cancelled.
 */
import { appendFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import type { LedgerLine, LedgerPhase } from '@treadle/testkit';
import { oddText } from './odd-text.ts';
import { noise, png } from './pictures.ts';

type Input = Readonly<Record<string, unknown>>;
interface Part { readonly type: string; readonly [field: string]: unknown }
/** What a tool answers: text, parts, or the very bytes of a JSON string's inside. */
type Answer = string | readonly Part[] | Buffer;

interface Tool {
  readonly properties: Readonly<Record<string, string>>;
  readonly optional?: readonly string[];
  /** Instead of `properties`: the whole schema. */
  readonly schema?: Readonly<Record<string, unknown>>;
  /** Whether it may be called again and again. */
  readonly read: boolean;
  readonly answer: (input: Input) => Answer;
}

/** What nobody should use unasked. */
const ops: Readonly<Record<string, Tool>> = {
  deploy: { properties: { t: 'string', ms: 'number' }, optional: ['ms'], read: false, answer: ({ t }) => `deployed ${String(t)}` },
  deploy2: { properties: { t: 'string' }, read: false, answer: ({ t }) => `deployed ${String(t)} again` },
  send_mail: { properties: { to: 'string' }, read: false, answer: ({ to }) => `sent to ${String(to)}` },
  delete_all: { properties: {}, read: false, answer: () => 'all is gone' },
  look_up: { properties: { q: 'string' }, read: true, answer: ({ q }) => `nothing about ${String(q)}` },
};

const plain: Readonly<Record<string, Tool>> = {
  // The same tool three times: the host calls it once, idempotent, and once beside others.
  note: { properties: { v: 'string', ms: 'number' }, optional: ['ms'], read: false, answer: ({ v }) => `noted ${String(v)}` },
  keyed_note: { properties: { v: 'string', ms: 'number' }, optional: ['ms'], read: false, answer: ({ v }) => `noted ${String(v)}` },
  list_items: { properties: {}, read: true, answer: () => 'two items' },
  pair: { properties: { a: 'number', b: 'number' }, read: true, answer: ({ a, b }) => `${String(a)} and ${String(b)}` },
  run_command: { properties: { command: 'string' }, read: true, answer: ({ command }) => `ran ${String(command)}` },
  write_file: { properties: { path: 'string', text: 'string' }, read: false, answer: ({ path, text }) => `${String(text).length} characters in ${String(path)}` },
  weather: { properties: { city: 'string' }, read: true, answer: ({ city }) => `It rains in ${String(city)}.` },
  search: { properties: { q: 'string' }, read: true, answer: ({ q }) => `nothing about ${String(q)}` },
  page: { properties: { n: 'number', bytes: 'number' }, read: true, answer: ({ n, bytes }) => `page ${String(n)} ${'lorem ipsum '.repeat(Number(bytes) / 12 + 1)}`.slice(0, Number(bytes)) },
  /** The JSON string `code`, decoded: so a script says what the tool returns, half characters too. */
  say: { properties: { code: 'string' }, read: true, answer: ({ code }) => JSON.parse(String(code)) as string },
  odd: { properties: { seed: 'number' }, read: true, answer: ({ seed }) => oddText(Number(seed)) },
  bytes: { properties: { hex: 'string' }, read: true, answer: ({ hex }) => Buffer.from(String(hex), 'hex') },
  /** Its schema refers to a part of itself. It judges for itself what it is given, as a server would. */
  query: {
    properties: {}, read: true,
    schema: {
      type: 'object', properties: { q: { $ref: '#/$defs/Query' } }, required: ['q'], additionalProperties: false,
      $defs: { Query: { type: 'object', properties: { limit: { type: 'integer' }, and: { $ref: '#/$defs/Query' } }, required: ['limit'], additionalProperties: false } },
    },
    answer: ({ q }) => Number.isInteger((q as Input)['limit']) ? `at most ${String((q as Input)['limit'])}` : 'limit is no integer',
  },
  /** Arguments with names that not every provider takes. */
  find: { properties: { 'filter[id]': 'string', 名前: 'string' }, optional: ['名前'], read: true, answer: (input) => `nothing about ${String(input['filter[id]'])} or ${String(input['名前'])}` },
  /** Its schema has a word of the host's compiler, which would make validators answer later. */
  sly: {
    properties: {}, read: true, schema: { $async: true, type: 'object', properties: { q: { type: 'string' } }, required: ['q'] },
    answer: ({ q }) => `sly ${String(q)}`,
  },
  /** Its schema leads back to itself. */
  round: { properties: {}, read: true, schema: { type: 'object', $dynamicRef: '#round' }, answer: () => 'round' },
  picture: { properties: { kind: 'string' }, read: true, answer: ({ kind }) => [{ type: 'image', mimeType: 'image/png', data: picture(String(kind)) }] },
};

/** `wide`: more pixels than providers take. `heavy`: more bytes. `none`: as many, and no picture. `broken`: the beginning of one. */
function picture(kind: string): string {
  switch (kind) {
    case 'heavy': return noise(2200, 2200);
    case 'none': return Buffer.alloc(4_900_000, 0x5a).toString('base64');
    case 'broken': return png(300, 300).slice(0, 80);
    case 'small': return png(30, 20);
    default: return png(9000, 100);
  }
}

interface Message { readonly id?: number | string; readonly method?: string; readonly params?: Record<string, unknown> }

const ledger = process.env.LEDGER_FILE;
if (ledger === undefined) throw new Error('LEDGER_FILE names no file');
const file = ledger;
const running = new Map<unknown, () => void>();
const tools = process.env.CASE_TOOLS === 'ops' ? ops : plain;

function send(id: unknown, result: unknown): void {
  process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', id, result })}\n`);
}

function sendBytes(id: unknown, inside: Buffer): void {
  const [before, after] = JSON.stringify({ jsonrpc: '2.0', id, result: { content: [{ type: 'text', text: '@' }] } }).split('@');
  process.stdout.write(Buffer.concat([Buffer.from(before ?? ''), inside, Buffer.from(`${after ?? ''}\n`)]));
}

function list(): unknown {
  return {
    tools: Object.entries(tools).map(([name, tool]) => ({
      name, description: `Case tool ${name}.`, annotations: { readOnlyHint: tool.read },
      inputSchema: tool.schema ?? {
        type: 'object', additionalProperties: false, properties: Object.fromEntries(Object.entries(tool.properties).map(([key, type]) => [key, { type }])),
        required: Object.keys(tool.properties).filter((key) => !(tool.optional ?? []).includes(key)),
      },
    })),
  };
}

async function call(id: unknown, params: Record<string, unknown>): Promise<void> {
  const tool = tools[String(params['name'])];
  const input = (params['arguments'] ?? {}) as Input;
  if (tool === undefined) return send(id, { isError: true, content: [{ type: 'text', text: `no tool ${String(params['name'])}` }] });
  const meta = (params['_meta'] ?? {}) as Input;
  const write = (phase: LedgerPhase): void => {
    const text = (key: string): string | null => (typeof meta[key] === 'string' ? meta[key] : null);
    const line: LedgerLine = {
      ts: Date.now(), phase, tool: String(params['name']), run_id: text('treadle/run_id'), tool_use_id: text('treadle/tool_use_id'),
      idempotency_key: text('treadle/idempotency_key'), epoch: Number(meta['treadle/epoch']), input,
    };
    appendFileSync(file, `${JSON.stringify(line)}\n`);
  };
  write('start');
  const done = await new Promise<boolean>((resolve) => {
    const timer = setTimeout(resolve, Number(input['ms'] ?? 0), true);
    running.set(id, () => { clearTimeout(timer); resolve(false); });
  });
  running.delete(id);
  write(done ? 'end' : 'cancelled');
  if (!done) return;
  const answer = tool.answer(input);
  if (answer instanceof Buffer) sendBytes(id, answer);
  else send(id, { content: typeof answer === 'string' ? [{ type: 'text', text: answer }] : answer });
}

createInterface({ input: process.stdin }).on('line', (line) => {
  const { id, method, params = {} } = JSON.parse(line) as Message;
  if (method === 'initialize') send(id, { protocolVersion: params['protocolVersion'], capabilities: { tools: {} }, serverInfo: { name: 'case-tools', version: '0.1.0' } });
  else if (method === 'ping') send(id, {});
  else if (method === 'tools/list') send(id, list());
  else if (method === 'tools/call') void call(id, params);
  else if (method === 'notifications/cancelled') running.get(params['requestId'])?.();
}).on('close', () => { process.exit(0); });
