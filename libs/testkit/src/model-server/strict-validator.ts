/**
 * What a strict provider refuses, as a pure function of the request's body. Real Ollama is more lenient than this; the point
 * is that what passes here passes everywhere.
 */
import { imageProblems, schemaProblems, surrogateProblems } from './strict-values.ts';

type Json = Readonly<Record<string, unknown>>;

const legalName = /^[a-zA-Z0-9_-]{1,64}$/;
const roles = new Set(['system', 'user', 'assistant', 'tool']);

/** Every reason why the request is refused, in words; empty when it is valid. */
export function strictValidator(body: unknown, dialect: 'ollama'): readonly string[] {
  if (!isObject(body)) return [`${dialect}: the body is not an object`];
  const messages = Array.isArray(body['messages']) ? body['messages'] : null;
  return [
    ...(typeof body['model'] === 'string' && body['model'] !== '' ? [] : ['model is missing']),
    ...(messages === null ? ['messages is not a list'] : messagesProblems(messages)),
    ...toolsProblems(body['tools']),
    ...settingsProblems(body),
    ...surrogateProblems(body),
  ];
}

/** Without these Ollama cuts the front of the conversation silently. */
function settingsProblems(body: Json): string[] {
  const options = isObject(body['options']) ? body['options'] : {};
  const window = options['num_ctx'];
  return [
    ...(Number.isInteger(window) && (window as number) > 0 ? [] : ['options.num_ctx is missing']),
    ...(body['truncate'] === false ? [] : ['truncate is not false']),
  ];
}

function messagesProblems(messages: readonly unknown[]): string[] {
  const wellShaped = messages.filter(isObject);
  if (wellShaped.length < messages.length) return ['a message is not an object'];
  return [
    ...(wellShaped.some((message) => message['role'] === 'user') ? [] : ['there is no user message']),
    ...wellShaped.flatMap(messageProblems),
    ...pairingProblems(wellShaped),
  ];
}

function messageProblems(message: Json, index: number): string[] {
  const { role, content, images } = message;
  const where = `messages[${index}]`;
  if (typeof role !== 'string' || !roles.has(role)) return [`${where}: unknown role`];
  if (typeof content !== 'string') return [`${where}: content is not a string`];
  const problems = images === undefined ? [] : imageProblems(images, where);
  if (role !== 'tool' && content.trim() === '' && images === undefined && callsOf(message).length === 0) problems.push(`${where}: empty text`);
  if (message['tool_calls'] !== undefined && !Array.isArray(message['tool_calls'])) problems.push(`${where}: tool_calls is not a list`);
  if (role !== 'assistant' && callsOf(message).length > 0) problems.push(`${where}: a call that is not the assistant's`);
  return problems;
}

/** Each call has its one result right behind the message, in the order of the calls, and no result is without a call. */
function pairingProblems(messages: readonly Json[]): string[] {
  const problems: string[] = [];
  const seen = new Set<string>();
  let expected: { id: string; name: string }[] = [];
  const flush = (where: string): void => {
    for (const call of expected) problems.push(`${where}: call ${call.id} has no result`);
    expected = [];
  };
  messages.forEach((message, index) => {
    const where = `messages[${index}]`;
    if (message['role'] === 'tool') {
      const problem = resultProblem(message, expected, seen);
      if (problem !== null) problems.push(`${where}: ${problem}`);
      const place = expected.findIndex((call) => call.id === message['tool_call_id']);
      if (place >= 0) expected.splice(place, 1);
      return;
    }
    flush(where);
    for (const call of callsOf(message)) {
      const { id, name, problems: found } = readCall(call);
      problems.push(...found.map((problem) => `${where}: ${problem}`));
      if (seen.has(id)) problems.push(`${where}: call id ${id} is not unique`);
      seen.add(id);
      expected.push({ id, name });
    }
  });
  flush('the end');
  return problems;
}

function resultProblem(message: Json, expected: readonly { id: string; name: string }[], seen: ReadonlySet<string>): string | null {
  const id = message['tool_call_id'];
  if (typeof id !== 'string') return 'a result without tool_call_id';
  const [next] = expected;
  const own = expected.find((call) => call.id === id);
  if (own === undefined) return seen.has(id) ? `call ${id} has more than one result, or it does not stand right behind its call` : `result ${id} has no call`;
  if (next !== own) return `result ${id} is out of order`;
  return message['tool_name'] === own.name ? null : `result ${id} names another tool than its call`;
}

function readCall(call: unknown): { id: string; name: string; problems: string[] } {
  const outer = isObject(call) ? call : {};
  const inner = isObject(outer['function']) ? outer['function'] : {};
  const id = outer['id'];
  const name = inner['name'];
  const problems: string[] = [];
  if (typeof id !== 'string' || id === '') problems.push('a call without id');
  if (typeof name !== 'string' || !legalName.test(name)) problems.push(`illegal tool name ${JSON.stringify(name)}`);
  if (!isObject(inner['arguments'])) problems.push(`the arguments of call ${String(id)} are not an object`);
  return { id: String(id), name: String(name), problems };
}

function toolsProblems(tools: unknown): string[] {
  if (tools === undefined) return [];
  if (!Array.isArray(tools)) return ['tools is not a list'];
  const names = new Set<string>();
  return tools.flatMap((tool: unknown, index) => {
    const where = `tools[${index}]`;
    const definition = isObject(tool) && isObject(tool['function']) ? tool['function'] : {};
    const { name, parameters } = definition;
    const problems: string[] = [];
    if (typeof name !== 'string' || !legalName.test(name)) problems.push(`${where}: illegal tool name ${JSON.stringify(name)}`);
    else if (names.has(name)) problems.push(`${where}: the name ${name} is not unique`);
    if (typeof name === 'string') names.add(name);
    if (!isObject(parameters) || parameters['type'] !== 'object') problems.push(`${where}: parameters is not an object schema`);
    return [...problems, ...schemaProblems(parameters, where)];
  });
}

function callsOf(message: Json): readonly unknown[] {
  const calls: unknown = message['tool_calls'];
  return Array.isArray(calls) ? calls : [];
}

function isObject(value: unknown): value is Json {
  return value !== null && typeof value === 'object' && !Array.isArray(value);
}
