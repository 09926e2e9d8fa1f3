/** What each kind of span is called and says, from the engine's words to the names of names.ts. */
import { assertNever } from '@treadle/core';
import type { Carrier, SpanEnd, Traced } from '@treadle/engine';
import { inputJson, outputJson, systemJson, valueJson, type Mask } from './content.ts';
import { content, genAi, mcp, operations, spanNames, treadle } from './names.ts';

export type Attributes = Readonly<Record<string, string | number | boolean | readonly string[] | undefined>>;

export interface Beginning { readonly name: string; readonly kind: 'client' | 'internal'; readonly attributes: Attributes }

export function beginningOf(what: Traced): Beginning {
  switch (what.type) {
    case 'run_creation': return {
      name: `${spanNames.run_creation} ${what.agent}`, kind: 'internal',
      attributes: { [genAi.agent]: what.agent, [genAi.agentVersion]: what.agent_version, [genAi.conversation]: what.session_id, [treadle.run]: what.run_id, [treadle.tenant]: what.tenant },
    };
    case 'turn': return turnBegins(what);
    case 'model_call': return modelCallBegins(what);
    case 'tool_call': return toolCallBegins(what);
    case 'archive_write': return {
      name: spanNames.archive_write, kind: 'client',
      attributes: { [treadle.run]: what.range.run_id, [treadle.firstSeq]: what.range.first_seq, [treadle.lastSeq]: what.range.last_seq },
    };
    default: return assertNever(what);
  }
}

type Of<Type extends Traced['type']> = Extract<Traced, { type: Type }>;

function turnBegins({ state, claimed, job_n, worker }: Of<'turn'>): Beginning {
  const { agent, agent_version, session_id, run_id, tenant, turn_open, turn_number, attempt } = state;
  return {
    name: `${operations.turn} ${agent}`, kind: 'internal',
    attributes: {
      [genAi.operation]: operations.turn, [genAi.agent]: agent, [genAi.agentVersion]: agent_version, [genAi.conversation]: session_id, [treadle.run]: run_id, [treadle.tenant]: tenant,
      [treadle.turn]: turn_open ? turn_number : turn_number + 1, [treadle.attempt]: turn_open ? attempt + 1 : 1, [treadle.epoch]: claimed.epoch, [treadle.job]: job_n,
      [treadle.deliveries]: claimed.deliveries, [treadle.worker]: worker,
    },
  };
}

function modelCallBegins({ state, request: { model }, purpose }: Of<'model_call'>): Beginning {
  return {
    name: `${operations.model_call} ${model.model}`, kind: 'client',
    attributes: {
      [genAi.operation]: operations.model_call, [genAi.provider]: model.provider, [genAi.requestModel]: model.model, [genAi.maxTokens]: model.max_output_tokens, [genAi.stream]: true,
      [genAi.agent]: state.agent, [genAi.conversation]: state.session_id, [treadle.run]: state.run_id, [treadle.model]: model.name, [treadle.chain]: state.spec?.chain.name, [treadle.purpose]: purpose,
    },
  };
}

function toolCallBegins({ state, tool, call }: Of<'tool_call'>): Beginning {
  return {
    name: `${operations.tool_call} ${tool.name}`, kind: 'internal',
    attributes: {
      [genAi.operation]: operations.tool_call, [genAi.toolName]: tool.name, [genAi.toolType]: 'function', [genAi.toolCallId]: call.tool_use_id, [genAi.agent]: state.agent,
      [genAi.conversation]: state.session_id, [treadle.run]: state.run_id, [treadle.toolEffect]: tool.effect,
    },
  };
}

/** What is said to a model or a tool, for those who have asked for it. */
export function saidAtBeginning(what: Traced, mask: Mask): Attributes {
  switch (what.type) {
    case 'model_call': {
      const { system } = what.request;
      return { [content.input]: inputJson(what.request, mask), [content.system]: system === '' ? undefined : systemJson(system, mask) };
    }
    case 'tool_call': return { [content.toolArguments]: valueJson(what.call.tool_input, mask) };
    default: return {};
  }
}

/** What a model or a tool has said. */
export function saidAtEnd(how: SpanEnd, mask: Mask): Attributes {
  if (how.type === 'model_call' && how.outcome.type === 'replied') return { [content.output]: outputJson(how.outcome.reply, mask) };
  return how.type === 'tool_call' ? { [content.toolResult]: valueJson(how.result.content, mask) } : {};
}

/** An MCP call is no span of its own: the conventions ask for its words on the tool's. */
export function carrierAttributes({ transport }: Carrier): Attributes {
  return { [mcp.method]: 'tools/call', [mcp.transport]: transport };
}

export interface Ending { readonly attributes: Attributes; /** What the span failed by; null where it did not. */ readonly error: string | null }

export function endingOf(how: SpanEnd): Ending {
  switch (how.type) {
    case 'run_creation': return { attributes: { [treadle.creation]: how.reply }, error: creations.has(how.reply) ? null : how.reply };
    case 'turn': return turnEnds(how);
    case 'model_call': return modelCallEnds(how.outcome);
    case 'tool_call': {
      const { is_error, outcome = is_error ? 'error' : 'ok' } = how.result;
      return { attributes: { [treadle.toolOutcome]: outcome }, error: outcome === 'ok' ? null : outcome === 'error' ? toolError : outcome };
    }
    case 'archive_write': return { attributes: {}, error: null };
    case 'threw': return { attributes: {}, error: kindOf(how.error) };
    default: return assertNever(how);
  }
}

/** The conventions' word for a tool that says so itself. */
const toolError = 'tool_error';

const creations: ReadonlySet<string> = new Set(['created', 'exists']);
/** Ways in which a delivery ends without anything being wrong. */
const goodEnds: ReadonlySet<string> = new Set(['done', 'drain']);

function turnEnds({ how, state }: Extract<SpanEnd, { type: 'turn' }>): Ending {
  const failed = how === 'done' && state.status === 'failed' ? state.stop_reason : null;
  return {
    attributes: { [treadle.turnOutcome]: how, [treadle.status]: state.status, [treadle.stopReason]: state.stop_reason ?? undefined },
    error: goodEnds.has(how) ? failed : how,
  };
}

function modelCallEnds(outcome: Extract<SpanEnd, { type: 'model_call' }>['outcome']): Ending {
  const usage = outcome.type === 'replied' ? outcome.reply.usage : outcome.failure.usage;
  const spent = usage === null ? {} : {
    [genAi.inputTokens]: usage.input_tokens, [genAi.outputTokens]: usage.output_tokens, [treadle.cost]: usage.cost_usd,
    ...(usage.cached_tokens > 0 ? { [genAi.cachedTokens]: usage.cached_tokens } : {}),
  };
  if (outcome.type === 'failed') return { attributes: spent, error: outcome.failure.error_type };
  const { reply } = outcome;
  return {
    attributes: {
      ...spent, [genAi.responseModel]: reply.served_as, [genAi.finishReasons]: [reply.finish_raw === '' ? reply.finish : reply.finish_raw],
    },
    error: null,
  };
}

/** The class, or the code that a system gives: never the message, which may repeat what was said. */
function kindOf(error: unknown): string {
  if (!(error instanceof Error)) return '_OTHER';
  const { code } = error as Error & { readonly code?: unknown };
  return typeof code === 'string' ? code : error.name;
}
