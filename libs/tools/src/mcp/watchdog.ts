/**
 * Ends the process group of an MCP server when this process is killed without a chance to do it itself (SIGKILL, out of memory):
 * a server that does not notice that its input has ended would live on for ever.
 *
 * A shell in a group of its own waits for the end of a pipe that only this process holds; nothing is ever written to it.
 * 1  It is told to go as soon as the server has ended, so it never signals a group that is no longer the server's.
 * 2  Where there is no shell there is no watchdog, and nothing else changes.
 */
import { spawn } from 'node:child_process';

/** The pause lets a server that does see its input end finish by itself. */
const script = 'while read -r _; do :; done; sleep 2; kill -s KILL -- "-$1" 2>/dev/null';

/** `groupId` is the pid that the server's group is named by. The answer calls the watchdog off. */
export function watchOver(groupId: number): () => void {
  const dog = spawn('/bin/sh', ['-c', script, 'treadle-mcp-watchdog', String(groupId)], { stdio: ['pipe', 'ignore', 'ignore'], detached: true, env: { PATH: process.env.PATH } });
  dog.on('error', () => undefined);
  dog.stdin.on('error', () => undefined);
  dog.unref();
  // A pipe is a socket, which by itself would keep this process.
  (dog.stdin as typeof dog.stdin & { unref?(): void }).unref?.();
  return () => { dog.kill('SIGKILL'); };
}
