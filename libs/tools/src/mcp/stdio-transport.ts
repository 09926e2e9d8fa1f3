/**
 * One MCP server process and the pipe to it.
 *
 * Used instead of the SDK's own stdio transport, which knows a death only when the last holder of the pipe is gone (a child of
 * the server keeps it open, and pending calls hang) and kills the server alone (`npx` leaves its child behind).
 *
 * Owns: the process, its whole process group, the pipes. States: new → running → ended.
 *
 * 1  The server leads a group of its own; whoever ends it ends the group.
 * 2  `onclose` comes once, soon after the server itself has ended, whoever else holds its pipes.
 * 3  A watchdog ends the group when this process is killed (watchdog.ts); it goes with the server.
 * 4  A server that has closed its output can answer nobody any more, and is ended.
 * 5  A line that is no message (servers log to stdout) is skipped; a message above the limit ends the server.
 */
import { spawn, type ChildProcess } from 'node:child_process';
import { getDefaultEnvironment } from '@modelcontextprotocol/sdk/client/stdio.js';
import { serializeMessage } from '@modelcontextprotocol/sdk/shared/stdio.js';
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js';
import type { JSONRPCMessage } from '@modelcontextprotocol/sdk/types.js';
import type { McpStdioSource } from '../sources.ts';
import { MessageLines, messageOf } from './message-lines.ts';
import type { McpTransport } from './transport.ts';
import { watchOver } from './watchdog.ts';

/** For what is still in the pipe when the server has ended. */
const drainMs = 200;
/** For the server to end by itself when its input closes, then after SIGTERM. */
const patienceMs = 1_000;
const stderrKept = 2_000;

export function createStdioTransport(server: McpStdioSource, maxMessageBytes: number): McpTransport {
  return new ServerProcess(server, maxMessageBytes);
}

class ServerProcess implements McpTransport {
  onclose?: () => void;
  onerror?: (error: Error) => void;
  onmessage?: Transport['onmessage'];
  readonly #server: McpStdioSource;
  readonly #lines: MessageLines;
  readonly #ended = Promise.withResolvers<void>();
  #child: ChildProcess | null = null;
  #closing = false;
  #over = false;
  #callOff: () => void = () => undefined;
  #stderr = '';

  constructor(server: McpStdioSource, maxMessageBytes: number) {
    this.#server = server;
    this.#lines = new MessageLines(maxMessageBytes);
  }

  /** The end of what it wrote to stderr, without the rest of a word that was cut: it may be that of a secret, which nobody would know. */
  lastWords(): string {
    return (this.#stderr.length < stderrKept ? this.#stderr : this.#stderr.replace(/^\S+/, '')).trim();
  }

  async start(): Promise<void> {
    const { command, args, env } = this.#server;
    const child = spawn(command, [...args], { env: { ...getDefaultEnvironment(), ...env }, stdio: 'pipe', detached: true, windowsHide: true });
    this.#child = child;
    if (child.pid !== undefined) this.#callOff = watchOver(child.pid);
    child.stdout.on('data', (chunk: Buffer) => this.#read(chunk));
    child.stdout.once('end', () => { setTimeout(() => { if (!this.#closing) this.killNow(); }, drainMs).unref(); });
    child.stderr.setEncoding('utf8').on('data', (text: string) => { this.#stderr = (this.#stderr + text).slice(-stderrKept); });
    for (const pipe of [child.stdin, child.stdout, child.stderr]) pipe.on('error', (error: Error) => this.onerror?.(error));
    child.once('exit', () => {
      this.#callOff();
      this.#signalGroup('SIGKILL');
      // Waits for what the server wrote last; unless a stranger holds the pipe, `close` is there first.
      setTimeout(() => this.#end(), drainMs).unref();
    });
    child.once('close', () => this.#end());
    await new Promise<void>((resolve, reject) => {
      child.once('spawn', resolve);
      child.once('error', (error) => {
        this.#end();
        reject(error);
      });
    });
  }

  async send(message: JSONRPCMessage): Promise<void> {
    const input = this.#child?.stdin;
    if (this.#over || input === null || input === undefined || !input.writable) throw new Error('Not connected');
    await new Promise<void>((resolve, reject) => {
      input.write(serializeMessage(message), (error) => (error === null || error === undefined ? resolve() : reject(error)));
    });
  }

  retire(): void {
    this.close().catch(() => undefined);
  }

  async close(): Promise<void> {
    if (this.#child === null || this.#over) return this.#end();
    this.#closing = true;
    this.#child.stdin?.end();
    if (await this.#endsWithin(patienceMs)) return;
    this.#signalGroup('SIGTERM');
    if (await this.#endsWithin(patienceMs)) return;
    this.#signalGroup('SIGKILL');
    if (!await this.#endsWithin(patienceMs)) this.#end();
  }

  killNow(): void {
    if (!this.#over) this.#signalGroup('SIGKILL');
  }

  #read(chunk: Buffer): void {
    let lines: string[];
    try {
      lines = this.#lines.append(chunk);
    } catch (error) {
      this.onerror?.(error as Error);
      this.#signalGroup('SIGKILL');
      return;
    }
    for (const line of lines) {
      try {
        this.onmessage?.(messageOf(line));
      } catch (error) {
        this.onerror?.(error as Error);
      }
    }
  }

  #signalGroup(signal: NodeJS.Signals): void {
    const pid = this.#child?.pid;
    if (pid === undefined) return;
    try {
      process.kill(-pid, signal);
    } catch {
      // Nobody of the group is left, or the system has no groups.
      this.#child?.kill(signal);
    }
  }

  async #endsWithin(ms: number): Promise<boolean> {
    const { promise: late, resolve } = Promise.withResolvers<boolean>();
    const timer = setTimeout(resolve, ms, false);
    const ended = await Promise.race([this.#ended.promise.then(() => true), late]);
    clearTimeout(timer);
    return ended;
  }

  #end(): void {
    if (this.#over) return;
    this.#over = true;
    for (const pipe of [this.#child?.stdin, this.#child?.stdout, this.#child?.stderr]) pipe?.destroy();
    this.#lines.clear();
    this.#ended.resolve();
    this.onclose?.();
  }
}
