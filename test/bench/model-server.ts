/**
 * The cheapest possible model on Ollama's wire, in a process of its own: a tool call per turn until `K` results are there, then an
 * answer. What a benchmark measures must not be this.
 */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

const turns = Number(process.env['K'] ?? 4);
const latencyMs = Number(process.env['LATENCY_MS'] ?? 0);

const server = createServer((request, response) => {
  let results = 0;
  let tail = '';
  request.setEncoding('utf8');
  request.on('data', (chunk: string) => {
    // Counted as it streams; a mark may lie across two chunks.
    const text = tail + chunk;
    results += text.split('"role":"tool"').length - 1;
    tail = text.slice(-'"role":"tool"'.length + 1);
  });
  request.on('end', () => {
    const message = results >= turns
      ? { role: 'assistant', content: 'done' }
      : { role: 'assistant', content: '', tool_calls: [{ id: `call_${results}`, function: { name: 'look', arguments: { turn: results } } }] };
    const answer = (): void => {
      response.writeHead(200, { 'content-type': 'application/x-ndjson' });
      response.end(`${JSON.stringify({ model: 'fake', message, done: false })}\n${JSON.stringify({ model: 'fake', message: { role: 'assistant', content: '' }, done: true, done_reason: 'stop', prompt_eval_count: 0, eval_count: 1 })}\n`);
    };
    if (latencyMs > 0) setTimeout(answer, latencyMs);
    else answer();
  });
});
server.listen(0, '127.0.0.1', () => { process.send?.((server.address() as AddressInfo).port); });
process.once('disconnect', () => { process.exit(); });
