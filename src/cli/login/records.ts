// Records that the API lists by id, such as keys and apps: reads all of them, or one by id.
import type { z } from "zod";
import { ApiError, requestJson, requestList, understood } from "./api-request.ts";
import type { Connection } from "./connection.ts";

/** A record as the API returned it (`raw`), and its parsed fields under the noun, such as `key`. */
export type Found<Noun extends string, Shape extends z.ZodType> = { raw: unknown } & Record<Noun, z.output<Shape>>;

/** Reads records of one kind from the API. Their path is the plural of the noun. */
export function recordsOf<const Noun extends string, Shape extends z.ZodType>(noun: Noun, shape: Shape) {
  const read = (raw: unknown, connection: Connection, what: string) =>
    ({ raw, [noun]: understood(shape, raw, connection, what) }) as Found<Noun, Shape>;
  const path = (id: string) => `/${noun}s/${encodeURIComponent(id)}`;
  return {
    path,
    /** Returns all records that the connection's credential may read, newest first. */
    async list(connection: Connection, signal: AbortSignal): Promise<Found<Noun, Shape>[]> {
      const entries = await requestList(connection, `/${noun}s`, signal);
      return entries.map((raw) => read(raw, connection, `list of ${noun}s`));
    },
    /** Returns the record with this id, or undefined, because a name may look like an id. */
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
