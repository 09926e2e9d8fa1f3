/**
 * The configuration of the containers: the agent `assistant` answers from Treadle's own documentation with a model of Ollama.
 * Copy this folder, change it, and let TREADLE_CONFIG_DIR in .env name the copy.
 */
import { defineConfig } from '@treadle/config';

const documents = '/app/docs';

export default defineConfig({
  models: {
    ollama: {
      provider: 'ollama', model: process.env.OLLAMA_MODEL ?? 'qwen3:4b', base_url: process.env.OLLAMA_HOST ?? 'http://ollama:11434',
      context_window: 16_384, max_output_tokens: 2048,
      // Ollama may have to load the model first.
      first_token_timeout_ms: 120_000,
    },
  },
  chains: { default: { models: ['ollama'] } },
  mcp_servers: {
    files: { command: 'node', args: ['/app/node_modules/@modelcontextprotocol/server-filesystem/dist/index.js', documents], trusted: true },
  },
  agents: {
    assistant: {
      soul: 'You are a careful assistant that answers questions from a folder of documents.',
      instructions: [
        `The documents are in the folder ${documents}. Look into it first, then read what may hold the answer.`,
        'Answer only from what you have read. If the documents do not say it, say that they do not.',
        'End your answer with a line "Source: " and the name of the file that the answer came from.',
      ].join('\n'),
      chain: 'default',
      tools: ['files/list_directory', 'files/search_files', 'files/read_text_file'],
      limits: { max_turns: { default: 20, max: 50 }, max_observation_bytes: { default: 8192, max: 32_768 } },
    },
  },
});
