/**
 * Every name that a span carries: what `docs/tracing.md` lists and dashboards ask for.
 *
 * `gen_ai.*` and `mcp.*` are those of OpenTelemetry's semantic conventions for generative AI
 * (github.com/open-telemetry/semantic-conventions-genai, docs/gen-ai: gen-ai-spans, gen-ai-agent-spans, mcp; as of 2026-11, status
 * "development"), `error.type` and `network.*` those of the general ones, 1.45. `treadle.*` are ours.
 */

/** `gen_ai.operation.name`, and the beginning of the span's name. */
export const operations = { turn: 'invoke_agent', model_call: 'chat', tool_call: 'execute_tool' } as const;

/** Of spans for which the conventions have no operation. */
export const spanNames = { run_creation: 'create_run', archive_write: 'archive_write' } as const;

export const genAi = {
  operation: 'gen_ai.operation.name',
  provider: 'gen_ai.provider.name',
  agent: 'gen_ai.agent.name',
  agentVersion: 'gen_ai.agent.version',
  conversation: 'gen_ai.conversation.id',
  requestModel: 'gen_ai.request.model',
  maxTokens: 'gen_ai.request.max_tokens',
  stream: 'gen_ai.request.stream',
  responseModel: 'gen_ai.response.model',
  finishReasons: 'gen_ai.response.finish_reasons',
  inputTokens: 'gen_ai.usage.input_tokens',
  outputTokens: 'gen_ai.usage.output_tokens',
  cachedTokens: 'gen_ai.usage.cache_read.input_tokens',
  toolName: 'gen_ai.tool.name',
  toolType: 'gen_ai.tool.type',
  toolCallId: 'gen_ai.tool.call.id',
} as const;

/** Only where content is captured. */
export const content = {
  system: 'gen_ai.system_instructions',
  input: 'gen_ai.input.messages',
  output: 'gen_ai.output.messages',
  toolArguments: 'gen_ai.tool.call.arguments',
  toolResult: 'gen_ai.tool.call.result',
} as const;

/** Without `mcp.session.id`: who knows it may speak for us to many a server. */
export const mcp = { method: 'mcp.method.name', transport: 'network.transport' } as const;

export const errorType = 'error.type';

export const treadle = {
  run: 'treadle.run.id',
  tenant: 'treadle.tenant',
  creation: 'treadle.run.creation',
  status: 'treadle.run.status',
  stopReason: 'treadle.run.stop_reason',
  turn: 'treadle.turn.number',
  attempt: 'treadle.turn.attempt',
  turnOutcome: 'treadle.turn.outcome',
  epoch: 'treadle.epoch',
  job: 'treadle.job.number',
  deliveries: 'treadle.deliveries',
  worker: 'treadle.worker',
  chain: 'treadle.chain',
  model: 'treadle.model',
  purpose: 'treadle.model.purpose',
  cost: 'treadle.model.cost_usd',
  toolEffect: 'treadle.tool.effect',
  toolOutcome: 'treadle.tool.outcome',
  firstSeq: 'treadle.archive.first_seq',
  lastSeq: 'treadle.archive.last_seq',
} as const;

export const spanAttributeNames: readonly string[] = [errorType, ...[genAi, content, mcp, treadle].flatMap((names) => Object.values(names))];
