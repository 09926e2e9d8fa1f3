/**
 * Whether names of validators and hooks mean one thing. Within an agent, since events and checks tell them apart by name; functions
 * over all agents, since a run knows its function by the name alone. Read from the file as it was written, as references are.
 */
import type { ConfigProblem } from './problem.ts';
import { nameOf } from './schema/answers.ts';

const lists = [{ key: 'validators', word: 'validator', call: 'check' }, { key: 'stop_hooks', word: 'stop hook', call: 'decide' }] as const;

interface Entry { readonly path: string; readonly name: string; /** Undefined where it is no function. */ readonly call: unknown }

export function ambiguousNames(raw: unknown): ConfigProblem[] {
  return lists.flatMap(({ key, word, call }) => {
    const functions = new Map<string, unknown>();
    return agentsOf(raw).flatMap(([agent, config]) => {
      const entries = entriesOf(config[key], `agents.${agent}.${key}`, call);
      return entries.flatMap((entry, index): ConfigProblem[] => {
        const path = entry.path;
        if (entries.findIndex((each) => each.name === entry.name) < index) return [{ path, problem: `a ${word} named "${entry.name}" stands in this agent already` }];
        if (entry.call === undefined) return [];
        const other = functions.get(entry.name) ?? entry.call;
        functions.set(entry.name, other);
        return other === entry.call ? [] : [{ path, problem: `another function of a ${word} has the name "${entry.name}" already` }];
      });
    });
  });
}

function entriesOf(list: unknown, path: string, call: string): Entry[] {
  if (!Array.isArray(list)) return [];
  return list.flatMap((entry: unknown, index): Entry[] => {
    if (!isObject(entry) || typeof entry.type !== 'string' || (entry.name !== undefined && typeof entry.name !== 'string')) return [];
    const own = entry.type === 'function' ? entry[call] : undefined;
    return [{ path: `${path}.${index}`, name: nameOf({ type: entry.type, name: entry.name }, index), call: typeof own === 'function' ? own : undefined }];
  });
}

function agentsOf(raw: unknown): [string, Record<string, unknown>][] {
  const agents = isObject(raw) && isObject(raw.agents) ? Object.entries(raw.agents) : [];
  return agents.filter((entry): entry is [string, Record<string, unknown>] => isObject(entry[1]));
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
