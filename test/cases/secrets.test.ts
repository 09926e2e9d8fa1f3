/** A provider that tells everybody the key it was sent: in a refusal, in a page, or by not being there. */
import { join } from 'node:path';
import { startModelServer, status, text, type ModelServer } from '@treadle/testkit';
import { expect, test, type TestContext } from 'vitest';
import { startStage, until, type Stage } from '../e2e/processes.ts';
import { folderText, pagesText, redisText, runText } from '../e2e/shown.ts';
import { wires, type Wire } from './speech.ts';

const secret = 'sk-test-SECRET1';
/** Refused, not reached, broken: and a model at last that answers, or none. */
async function begin(wire: Wire, { onTestFinished }: TestContext): Promise<{ readonly stage: Stage; readonly model: ModelServer }> {
  const model = await startModelServer({ strict: false, script: (body, _index, _dialect, headers) => {
    if (body.model === 'refuses') return status(401, { 'x-echo': JSON.stringify(headers) }, { error: { message: `no such key: ${JSON.stringify(headers)}`, type: 'authentication_error' } });
    if (body.model === 'breaks') return status(500, { 'content-type': 'text/html' }, `<html><h1>Server Error</h1><pre>${Object.entries(headers).map(([name, value]) => `${name}: ${String(value)}`).join('\n')}</pre></html>`);
    return text('the answer');
  } });
  onTestFinished(() => model.close());
  const url = wire === 'openai' ? `${model.url}/v1` : model.url;
  const each = (name: string, base_url = url) => ({ provider: wire, model: name, base_url, context_window: 32_768, max_output_tokens: 1024 });
  const key = { credentials: ['env:PROVIDER_KEY'] };
  const agent = { instructions: 'Test.', tools: [] };
  const stage = await startStage({
    model: {}, env: { PROVIDER_KEY: secret, LOG_LEVEL: 'trace' },
    config: {
      models: { refuses: { ...each('refuses'), ...key }, absent: { ...each('absent', `http://user:${secret}@127.0.0.1:1`), credentials: [secret] }, breaks: { ...each('breaks'), credentials: [`${secret}-too`] }, answers: { ...each('answers'), credentials: ['another'] } },
      chains: { default: { models: ['refuses', 'absent', 'answers'] }, hopeless: { models: ['refuses'] }, unreached: { models: ['absent'] }, broken: { models: ['breaks', 'answers'] } },
      agents: Object.fromEntries(['default', 'hopeless', 'unreached', 'broken'].map((chain) => [chain, { ...agent, chain }])),
    },
  });
  onTestFinished(() => stage.stop());
  return { stage, model };
}

// Each has a stage of its own, and mostly waits for a model to be asked again.
test.concurrent.for(wires)('C71: the key that a provider echoes in a 401, that never reached one, or that a 500 page shows, is nowhere (%s)', { timeout: 120_000 }, async (wire, context) => {
  const { stage, model } = await begin(wire, context);
  const worker = await stage.startWorker();
  const ended = await Promise.all(['default', 'hopeless', 'unreached', 'broken'].map(async (agent) => {
    const { id } = await stage.client.createRun({ agent, input: 'go' });
    const run = await stage.client.wait(id, 90_000);
    await until('it is archived', async () => (await stage.client.run(id))['archived_seq'] === run.last_seq);
    return run;
  }));
  expect(ended.map((run) => run.status)).toEqual(['completed', 'failed', 'failed', 'completed']);

  const shown: Record<string, string> = {
    ...Object.fromEntries(await Promise.all(ended.map(async ({ id }, index) => [`run ${index}`, await runText(stage.api.url, id)]))),
    ...await pagesText({ api: stage.api.url, workers: [worker.url] }),
    Redis: await redisText(stage.redis.url), archive: folderText(join(stage.dir, 'archive')), 'API log': stage.api.output(), 'worker log': worker.output(),
    'what models are asked': model.requests.map((request) => request.rawBody).join('\n'),
  };
  // Everybody was sent the key and said so, and what is searched has the failures in it.
  for (const name of ['refuses', 'breaks']) expect(JSON.stringify(model.requests.filter((request) => request.body?.model === name).map((request) => request.headers))).toContain(secret);
  const errors = ended.flatMap((_, index) => shown[`run ${index}`]!.split('\n')).filter((line) => line.includes('"type":"error"')).join('\n');
  for (const words of ['no such key', 'HTTP 500: an HTML page', 'ECONNREFUSED', '[redacted]']) expect(errors, words).toContain(words);
  expect(shown['archive']).toContain('no such key');
  expect(shown['worker log']).toContain('model call failed');
  const found = Object.entries(shown).filter(([, said]) => said.includes('SECRET1')).map(([place]) => place);
  expect(found).toEqual([]);
});
