import { describe, expect, it } from 'vitest';
import type { Message, ModelReply, ToolDefinition } from '@treadle/core';
import { createModelGateway } from '../../gateway.ts';
import { callOnce, connectionTo, requestOf, toolNamed } from '../../testing.ts';

const gateway = createModelGateway({ connections: { small: connectionTo('') } });

/** Stands in for the MCP filesystem server: the same names and the same words, over a map of paths. */
function filesystem(root: string, files: Readonly<Record<string, string>>) {
  const below = (folder: string): string[] => [...new Set(Object.keys(files)
    .filter((path) => path.startsWith(`${folder}/`))
    .map((path) => path.slice(folder.length + 1).split('/'))
    .map(([name, ...rest]) => (rest.length > 0 ? `[DIR] ${name}` : `[FILE] ${name}`)))];
  return (name: string, input: Readonly<Record<string, unknown>>): string => {
    const path = String(input['path']);
    switch (name) {
      case 'files/list_allowed_directories': return `Allowed directories:\n${root}`;
      case 'files/list_directory': return below(path).join('\n');
      case 'files/search_files': return Object.keys(files).filter((each) => each.startsWith(path)).join('\n');
      case 'files/directory_tree': return JSON.stringify(below(path).map((entry) => ({ name: entry.replace(/^\[\w+\] /, ''), type: 'file' })));
      default: {
        const content = files[path];
        if (content === undefined) throw new Error(`ENOENT: ${path}`);
        return content;
      }
    }
  };
}

const everyTool = ['list_allowed_directories', 'list_directory', 'read_text_file', 'write_file'];

interface Conversed { readonly answer: string; readonly calls: readonly string[]; readonly read: readonly string[]; readonly messages: readonly Message[]; readonly increments: readonly string[] }

/** The agent loop, as the engine runs it: calls are answered in order until there is none. */
async function converse(question: string, run: ReturnType<typeof filesystem>, names: readonly string[] = everyTool): Promise<Conversed> {
  const tools = names.map((name) => toolNamed(`files/${name}`));
  const messages: Message[] = [{ role: 'user', content: question }];
  const calls: string[] = [];
  const read: string[] = [];
  for (let turn = 0; turn < 30; turn++) {
    const { outcome, increments } = await callOnce(gateway, requestOf({ messages, tools }, 'scripted'));
    if (outcome.type !== 'replied') throw new Error(JSON.stringify(outcome));
    if (outcome.reply.calls.length === 0) return { answer: outcome.reply.text, calls, read, messages, increments };
    messages.push(...settle(outcome.reply, { tools, run, turn }));
    for (const call of outcome.reply.calls) {
      calls.push(call.name);
      if (call.name.includes('read')) read.push(String(call.input['path']));
    }
  }
  throw new Error('it never answered');
}

function settle(reply: ModelReply, how: { tools: readonly ToolDefinition[]; run: ReturnType<typeof filesystem>; turn: number }): Message[] {
  const calls = reply.calls.map((call, index) => ({
    tool_use_id: `call_${how.turn}_${index}`, tool_name: how.tools.find((tool) => tool.wire_name === call.name)!.name, tool_input: call.input,
  }));
  const results = calls.map((call): Message => {
    const base = { role: 'tool', tool_use_id: call.tool_use_id, tool_name: call.tool_name } as const;
    try {
      return { ...base, content: how.run(call.tool_name, call.tool_input), is_error: false };
    } catch (error) {
      return { ...base, content: String(error), is_error: true };
    }
  });
  return [{ role: 'assistant', text: reply.text, thinking: '', calls, model: 'small' }, ...results];
}

const handbook = filesystem('/data/docs', {
  '/data/docs/holidays.md': '# Holidays\n\nEvery employee has 28 days of paid holiday a year.\n\nUnused days expire in March.',
  '/data/docs/expenses.md': '# Expenses\n\nTravel is refunded within ten days.\n\n## Hotels\n\nA night may cost up to 140 euros without asking.',
  '/data/docs/security.md': '# Security\n\nLost laptops are reported within one hour.',
  '/data/docs/office.md': '# Office\n\nThe door code changes monthly.',
  '/data/docs/logo.png': 'binary',
});

describe('the scripted stand-in', () => {
  it('asks for the allowed folders, lists them, reads the best candidates, and quotes what it read with its source', async () => {
    const { answer, calls, read } = await converse('How many days of holidays do I have per year?', handbook);
    expect(calls.slice(0, 2)).toEqual(['files__list_allowed_directories', 'files__list_directory']);
    expect(read[0]).toBe('/data/docs/holidays.md');
    expect(read.length).toBeLessThanOrEqual(3);
    expect(answer).toContain('> Every employee has 28 days of paid holiday a year.');
    expect(answer).toMatch(/\nSource: \/data\/docs\/holidays\.md$/);
    expect(answer).toContain('scripted stand-in');
  });

  it('finds by contents what names do not tell', async () => {
    const { answer, read } = await converse('When does the door code change?', handbook);
    expect(answer).toContain('> The door code changes monthly.\n\nSource: /data/docs/office.md');
    expect(read).not.toContain('/data/docs/logo.png');
  });

  it('reads on, three at a time, while the files read say little of what was asked', async () => {
    const many = filesystem('/d', Object.fromEntries(Array.from({ length: 9 }, (_, index) => [`/d/n${index}.md`, index === 8 ? 'The zebra sleeps at noon.' : `Page ${index}.`])));
    const { answer, read } = await converse('When does the zebra sleep?', many);
    expect(read).toEqual(['/d/n0.md', '/d/n1.md', '/d/n2.md', '/d/n3.md', '/d/n4.md', '/d/n5.md', '/d/n6.md', '/d/n7.md', '/d/n8.md']);
    expect(answer).toContain('> The zebra sleeps at noon.\n\nSource: /d/n8.md');
  });

  it('looks into folders below, and passes over hidden ones', async () => {
    const nested = filesystem('/d', { '/d/a/b/deep.md': 'Whales sing.', '/d/.git/x.md': 'Whales whales.', '/d/top.md': 'Nothing.' });
    expect((await converse('Do whales sing?', nested)).answer).toContain('Source: /d/a/b/deep.md');
  });

  it.each([[['list_directory', 'read_file'], '.'], [['search_files', 'read_text_file'], '.'], [['list_allowed_directories', 'directory_tree', 'read_text_file'], '/d']])(
    'makes do with %j', async (names, root) => {
      const file = root === '.' ? './sea.md' : '/d/sea.md';
      const run = filesystem(root, { [file]: 'Whales sing.', 'sea.md': 'Whales sing.' });
      expect((await converse('Do whales sing?', run, names)).answer).toMatch(/> Whales sing\.\n\nSource: (\.\/|\/d\/)?sea\.md/);
    });

  it('says plainly that it found nothing, and what it read', async () => {
    const { answer } = await converse('Who invented the telephone?', handbook);
    expect(answer).toContain('found nothing about "Who invented the telephone?"');
    expect(answer).not.toContain('Source:');
  });

  it('says which tool failed, and ends', async () => {
    const broken = (): string => { throw new Error('EACCES: permission denied'); };
    const { answer, calls } = await converse('Who?', broken);
    expect(answer).toContain('EACCES: permission denied');
    expect(calls).toEqual(['files__list_allowed_directories']);
  });

  it('gives the same conversation the same replies, in a few increments', async () => {
    const [one, two] = [await converse('How are hotels paid?', handbook), await converse('How are hotels paid?', handbook)];
    expect(two).toEqual(one);
    expect(one.increments.length).toBeGreaterThan(2);
    expect(one.increments.join('')).toBe(one.answer);
  });

  it('answers the last question of a conversation, from tool results that came after it', async () => {
    const { messages, answer } = await converse('Holidays per year?', handbook);
    const again: Message[] = [...messages, { role: 'assistant', text: answer, thinking: '', calls: [], model: 'small' }, { role: 'user', content: 'And hotels?' }];
    const { outcome } = await callOnce(gateway, requestOf({ messages: again, tools: everyTool.map((name) => toolNamed(`files/${name}`)) }, 'scripted'));
    expect(outcome).toMatchObject({ reply: { calls: [{ name: 'files__list_allowed_directories' }], finish: 'tool_calls' } });
  });

  it('says what it is, and echoes, where it has no tools', async () => {
    const messages: Message[] = [{ role: 'user', content: 'Hello there' }, { role: 'host', note: 'steer', content: 'in French' }];
    const { outcome } = await callOnce(gateway, requestOf({ messages }, 'scripted'));
    expect(outcome).toMatchObject({ reply: { finish: 'stop', text: expect.stringMatching(/scripted stand-in.*"Hello there"[^]*You added: "in French"/) as string } });
  });

  it('stops when the caller aborts', async () => {
    const caller = new AbortController();
    const outcome = await gateway.call({ request: requestOf({}, 'scripted'), signal: caller.signal, onText: () => caller.abort() });
    expect(outcome).toMatchObject({ type: 'failed', failure: { error_type: 'aborted' } });
    expect(outcome.type === 'failed' && outcome.failure.partial_text.length).toBeGreaterThan(0);
  });
});
