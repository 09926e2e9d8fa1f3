/** What keeps tools inside their boundaries, and what they give from doing harm. */
import type { Protection } from './protections.ts';

const egress = 'libs/egress/src/egress.ts';
const ways = (named: string) => ({ file: 'libs/egress/src/egress.test.ts', named });
const traces = (named: string) => ({ file: 'libs/telemetry/src/tracing/tracer.test.ts', named });
const elsewhere = (named: string) => ({ file: 'libs/tools/src/kinds/mcp-http.test.ts', named });

export const boundaryProtections: readonly Protection[] = [
  {
    name: 'literal-addresses',
    without: 'an address that is written out is not looked at',
    edits: [{ file: egress, find: 'if (!free && isIP(literal) !== 0) refuse(', replace: 'if (!free && isIP(literal) === 9) refuse(' }],
    tests: [ways('literal addresses')],
  },
  {
    name: 'all-addresses',
    without: 'of the addresses of a name only the first is looked at',
    edits: [{ file: egress, find: 'for (const { address } of found) refuse(', replace: 'for (const { address } of found.slice(0, 1)) refuse(' }],
    tests: [ways('one inner address among public ones')],
  },
  {
    name: 'pinned-address',
    without: 'a name is asked for a second time after it was checked',
    edits: [{ file: egress, find: '      return found;\n    }).then(', replace: '      return resolve(hostname);\n    }).then(' }],
    tests: [ways('a name is resolved once')],
  },
  {
    name: 'masked-secrets',
    without: 'what a tool says is passed on with the host\'s secrets in it',
    edits: [{ file: 'libs/tools/src/content/mask.ts', find: '    result: (result) => ordered.length === 0 ?', replace: '    result: (result) => ordered.length >= 0 ?' }],
    tests: [{ file: 'libs/tools/src/kinds/http.test.ts', named: 'keeps its secrets although the server echoes them' }],
  },
  {
    name: 'traces-without-content',
    without: 'traces hold what was said without being asked to',
    edits: [{ file: 'libs/telemetry/src/tracing/tracer.ts', find: 'const told = capture && span.isRecording();', replace: 'const told = span.isRecording();' }],
    tests: [traces('model_call')],
  },
  {
    name: 'masked-before-cut',
    without: 'captured content is cut first, and what is left of a secret at the edge is not known any more',
    edits: [{ file: 'libs/telemetry/src/tracing/content.ts', find: "return { type: 'text', content: cut(mask(text)) };", replace: "return { type: 'text', content: mask(cut(text)) };" }],
    tests: [traces('masked before it is cut')],
  },
  {
    name: 'spans-end',
    without: 'a span is left open where the work throws',
    edits: [{ file: 'libs/engine/src/ports/tracer.ts', find: '  } finally {\n    span.end(how);\n  }', replace: "  } finally {\n    if (how.type !== 'threw') span.end(how);\n  }" }],
    tests: [{ file: 'test/engine/tracing.test.ts', named: 'each span has ended, once' }, traces('whoever throws ends the span')],
  },
  {
    name: 'errors-by-facts',
    without: 'of an error is logged whatever libraries hang onto it',
    edits: [{ file: 'libs/telemetry/src/logger.ts', find: "errorFacts.flatMap((name) => isFact(fields[name]) ? [[name, fields[name]]] : [])", replace: 'Object.entries(fields)' }],
    tests: [{ file: 'libs/telemetry/src/logger.test.ts', named: 'of an error its facts are written' }],
  },
  {
    name: 'query-secrets',
    without: 'keys in the query of an address are not known as secrets',
    edits: [{ file: 'libs/config/src/known-secrets.ts', find: '.flatMap(partsOf), ...queries])]', replace: '.flatMap(partsOf)])]' }],
    tests: [{ file: 'libs/config/src/known-secrets.test.ts', named: 'what its query calls a key counts' }],
  },
  {
    name: 'repeat-by-effect',
    without: 'a call that may have happened is sent again, whatever its effect',
    edits: [{ file: 'libs/tools/src/mcp/connection.ts', find: 'neverTaken(error) || (repeatable && brokeOff(error))', replace: 'neverTaken(error) || brokeOff(error)' }],
    tests: [elsewhere('is repeated only where that does no harm')],
  },
  {
    name: 'session-anew',
    without: 'a session that the server has forgotten is used for ever',
    edits: [{ file: 'libs/tools/src/mcp/connection.ts', find: '    return neverTaken(error) || (repeatable', replace: '    return (repeatable' }],
    tests: [elsewhere('has forgotten the session')],
  },
  {
    name: 'images-checked',
    without: 'a picture of a tool is sent as large as it came',
    edits: [{ file: 'libs/models/src/shrink-images.ts', find: "if (message.role === 'tool') return fitting(message, side);", replace: "if (message.role === 'tool') return message;" }],
    tests: [{ file: 'libs/models/src/shrink-images.test.ts', named: 'are within what providers take' }],
  },
  {
    name: 'images-prove-nothing',
    without: 'images that cost a provider little are taken for a conversation that it has cut',
    edits: [{ file: 'libs/core/src/decide-replied.ts', find: 'const certain = estimated_tokens - imageTokens(state, model);', replace: 'const certain = estimated_tokens - 0 * imageTokens(state, model);' }],
    tests: [{ file: 'libs/core/src/images.test.ts', named: 'prove nothing about a count' }],
  },
  {
    name: 'pinned-definition',
    without: 'a tool that its server describes otherwise is shown so in the middle of a run',
    edits: [{ file: 'libs/tools/src/catalogue/changes.ts', find: 'tools: [...pinned.filter(({ name }) => !gone.includes(name)), ...fresh]', replace: 'tools: [...now.tools]' }],
    tests: [{ file: 'libs/tools/src/catalogue/changes.test.ts', named: 'one is described otherwise, and stays as it was' }],
  },
  {
    name: 'links-to-nowhere',
    without: 'a link inside of the roots to what is not there yet counts as a place inside',
    edits: [{ file: 'libs/tools/src/call/roots.ts', find: 'return target === null ? place :', replace: 'return target !== undefined ? place :' }],
    tests: [{ file: 'libs/tools/src/call/roots.test.ts', named: 'work/planted is outside' }],
  },
  {
    name: 'schemas-judge-at-once',
    without: 'a schema of a server makes validators that answer with promises, to which nobody listens',
    edits: [{ file: 'libs/tools/src/arguments/schema-store.ts', find: '{ $schema, $async: _, ...words }', replace: '{ $schema, ...words }' }],
    tests: [{ file: 'libs/tools/src/arguments/check.test.ts', named: 'a schema whose validator would answer later' }],
  },
  {
    name: 'wire-names-kept',
    without: 'a tool that a run gets later takes the name under which the model knows another one',
    edits: [{ file: 'libs/tools/src/catalogue/wire-name.ts', find: '  if (taken.has(wire)) return', replace: '  if (taken.size < 0) return' }],
    tests: [{ file: 'libs/tools/src/catalogue/changes.test.ts', named: 'gets another one, always the same' }],
  },
  {
    name: 'exact-numbers',
    without: 'a number in a call is read as its neighbour, and the tool is called with that',
    edits: [{ file: 'libs/core/src/exact-json.ts', find: '(typeof value === \'number\' && isInexact(value, source) ? exact.rawJSON(source) : value)', replace: 'value' }],
    tests: [{ file: 'libs/models/src/reply/tool-arguments.test.ts', named: 'with a number that would become another one' }],
  },
];
