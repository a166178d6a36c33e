// Records that the API lists by id, such as keys and apps: reads all of them, or one by id.
import type { z } from "zod";
import { ApiError, requestJson, requestList, understood } from "./api-request.ts";
import type { Connection } from "./connection.ts";

/** A record as the API returned it, and under its noun the fields that this version reads. */
export type Found<Noun extends string, Shape extends z.ZodType> = { raw: unknown } & Record<Noun, z.output<Shape>>;

/** The records of one kind. The plural of the noun is their path in the API. */
export function recordsOf<const Noun extends string, Shape extends z.ZodType>(noun: Noun, shape: Shape) {
  const read = (raw: unknown, connection: Connection, what: string) =>
    ({ raw, [noun]: understood(shape, raw, connection, what) }) as Found<Noun, Shape>;
  const path = (id: string) => `/${noun}s/${encodeURIComponent(id)}`;
  return {
    path,
    /** Returns all records that the connection may see, newest first. */
    async list(connection: Connection, signal: AbortSignal): Promise<Found<Noun, Shape>[]> {
      const entries = await requestList(connection, `/${noun}s`, signal);
      return entries.map((raw) => read(raw, connection, `list of ${noun}s`));
    },
    /** Returns undefined if there is none, because a name may look like an id. */
    async withId(connection: Connection, id: string, signal: AbortSignal): Promise<Found<Noun, Shape> | undefined> {
      try {
        return read(await requestJson(connection, path(id), signal), connection, noun);
      } catch (error) {
        if (error instanceof ApiError && error.status === 404) return undefined;
        throw error;
      }
    },
  };
}
