/**
 * For which call of the server code is running.
 */
import { AsyncLocalStorage } from "node:async_hooks";
import type { IncomingCall } from "./link.js";

const calls = new AsyncLocalStorage<IncomingCall>();

export function inCall<T>(call: IncomingCall, work: () => Promise<T>): Promise<T> {
  return calls.run(call, work);
}

export function currentCall(): IncomingCall | undefined {
  return calls.getStore();
}
