/**
 * For which call of the server code is running. Kept where a second copy of this package finds it.
 */
import { AsyncLocalStorage } from "node:async_hooks";
import type { IncomingCall } from "./link.js";

const NAME = Symbol.for("heddle.runtime.calls");
const shared = globalThis as { [NAME]?: AsyncLocalStorage<IncomingCall> };
const calls = (shared[NAME] ??= new AsyncLocalStorage<IncomingCall>());

export function inCall<T>(call: IncomingCall, work: () => Promise<T>): Promise<T> {
  return calls.run(call, work);
}

export function currentCall(): IncomingCall | undefined {
  return calls.getStore();
}

const counts = new WeakMap<IncomingCall, Map<string, number>>();

/** A name for what a task does for the n-th time. */
export function nextKey(call: IncomingCall, place: string): string {
  let places = counts.get(call);
  if (places === undefined) counts.set(call, (places = new Map()));
  const count = (places.get(place) ?? 0) + 1;
  places.set(place, count);
  return `${place}#${count}`;
}
