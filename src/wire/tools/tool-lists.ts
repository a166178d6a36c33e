// The shape of lists that say which tools a key, a person, an app or an account may use.
import { z } from "zod";
import { maxToolEntries, maxToolEntryLength, toolEntryPattern } from "../../domain/tools/tool-access.ts";

export const givenTools = z
  .array(z.string().min(1).max(maxToolEntryLength).regex(toolEntryPattern))
  .max(maxToolEntries)
  .describe(
    "Tools that it may use: `server` for all of its tools, `server/tool` for one, either with an asterisk at its end for all that begin so. Empty: none. null: all that are offered.",
  );
export const shownTools = z
  .array(z.string())
  .nullable()
  .describe("The tools that it may use, as `server` or `server/tool`; null: all that are offered.");
