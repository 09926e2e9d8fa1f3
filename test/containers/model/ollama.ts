/**
 * Stands in for Ollama in a container: `serve`, `list`, `show` and `pull` of its command line, and the scripted model server. The last text of
 * the user is the script, as JSON: so many turns with one call each, and the turn whose first request is answered with a word, and then never.
 */
import { raw, reply, stall, startModelServer, text } from '../../../libs/testkit/src/model-server/index.ts';

export interface Plan {
  /** Replies with a call, before the answer `done`. */
  readonly turns: number;
  readonly call: { readonly name: string; readonly args: Readonly<Record<string, unknown>> };
  /** Silence before each reply. */
  readonly delay_ms?: number;
  /** From 1. */
  readonly stall_at?: number;
}

/** By it one sees that the request has come. */
const begun = `${JSON.stringify({ model: 'scripted:latest', message: { role: 'assistant', content: 'Well, ' }, done: false })}\n`;

if (process.argv[2] === 'serve') await serve();
else if (process.argv[2] === 'list') await fetch('http://127.0.0.1:11434/api/tags');

async function serve(): Promise<void> {
  const stalled = new Set<string>();
  await startModelServer({
    dialect: 'ollama', host: '0.0.0.0', port: 11_434, models: [{ name: 'scripted:latest', context_length: 32_768, capabilities: ['completion', 'tools'] }],
    script: ({ messages = [] }) => {
      const asked = messages.findLast((message) => message.role === 'user')?.content as string;
      const plan = JSON.parse(asked) as Plan;
      const answered = messages.filter((message) => message.role === 'tool').length;
      if (plan.stall_at === answered + 1 && !stalled.has(asked)) {
        stalled.add(asked);
        return stall({ after: begun.length, of: raw([begun]) });
      }
      const delivery = { delayMs: plan.delay_ms ?? 0 };
      if (answered >= plan.turns) return text('done', delivery);
      return reply({ calls: [{ id: null, name: plan.call.name, args: { ...plan.call.args, n: answered } }] }, delivery);
    },
  });
  process.on('SIGTERM', () => { process.exit(0); });
}
