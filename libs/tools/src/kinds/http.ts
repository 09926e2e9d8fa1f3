/** Tools that are one HTTP request: the configuration's `http_tools`, by their plain names. */
import type { EffectClass } from '@treadle/core';
import { exchanged, type Asked } from '../http/exchange.ts';
import { fillUrl, withQuery } from '../http/url-template.ts';
import type { OfferedTool, ToolKind } from '../kind.ts';
import type { CompleteOptions } from '../options.ts';
import type { HttpToolSource } from '../sources.ts';

export function createHttpKind(sources: Readonly<Record<string, HttpToolSource>>, fetch: typeof globalThis.fetch, { maxResponseBytes }: CompleteOptions): ToolKind {
  const byName = new Map(Object.entries(sources));
  return {
    owns: (name) => byName.has(name),
    offered: async () => [{ tools: [...byName].map(([name, source]) => offered(name, source)), problems: [], missing: [] }],
    async call({ tool, input, idempotency_key }, window) {
      const source = byName.get(tool.name);
      if (source === undefined) return { type: 'not_started', why: `This worker has no tool named ${tool.name}.` };
      const asked = requestOf(source, input, idempotency_key);
      return typeof asked === 'string' ? { type: 'not_started', why: asked } : exchanged({ fetch, window, maxBytes: maxResponseBytes }, asked);
    },
    close: async () => {},
  };
}

/** By the meaning that HTTP itself gives the method; the host's `tools` may know better. */
function offered(name: string, { method, description, input_schema }: HttpToolSource): OfferedTool {
  const reads = method === 'GET' || method === 'HEAD';
  return { name, description, input_schema, effect: (reads ? 'read' : 'once') satisfies EffectClass, parallel: reads ? 'parallel' : 'serial', timeout_ms: null };
}

const inQuery: readonly string[] = ['GET', 'HEAD', 'DELETE'];

/** The request, or why these arguments make none. */
function requestOf({ method, url: template, headers }: HttpToolSource, input: Readonly<Record<string, unknown>>, idempotency_key: string): Asked | string {
  const filled = fillUrl(template, input);
  if (filled.type === 'unfit') return `The arguments do not fit the tool's address: ${filled.why}.`;
  const { url, rest } = filled;
  const common = { method, headers: { 'idempotency-key': idempotency_key, ...lowerCase(headers) } };
  if (inQuery.includes(method)) return { ...common, url: withQuery(url, rest) };
  return { ...common, url, headers: { 'content-type': 'application/json', ...common.headers }, body: JSON.stringify(rest) };
}

function lowerCase(headers: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]));
}
