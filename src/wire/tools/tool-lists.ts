// Schema of the lists of tools that a key, a person, an app or an account may use.
import { z } from "zod";
import { maxToolEntries, maxToolEntryLength, toolEntryPattern } from "../../domain/tools/tool-access.ts";

export const givenTools = z
  .array(z.string().min(1).max(maxToolEntryLength).regex(toolEntryPattern))
  .max(maxToolEntries)
  .describe(
    "Allowed tools: `server` for all tools of a server, `server/tool` for one tool, or a prefix of either ending in `*`. Empty: none. null: all tools that are offered.",
  );
export const shownTools = z
  .array(z.string())
  .nullable()
  .describe("Allowed tools, as `server` or `server/tool`. null: all tools that are offered.");
