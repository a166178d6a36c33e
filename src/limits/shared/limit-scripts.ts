// Lua scripts for limits in Redis or Valkey. Each runs atomically, by the server's clock.
import admit from "./scripts/admit.lua" with { type: "text" };
import apply from "./scripts/apply.lua" with { type: "text" };
import beat from "./scripts/beat.lua" with { type: "text" };
import bucket from "./scripts/bucket.lua" with { type: "text" };
import common from "./scripts/common.lua" with { type: "text" };
import fields from "./scripts/fields.lua" with { type: "text" };
import giveBack from "./scripts/give-back.lua" with { type: "text" };
import grow from "./scripts/grow.lua" with { type: "text" };
import heldOf from "./scripts/held-of.lua" with { type: "text" };
import late from "./scripts/late.lua" with { type: "text" };
import leave from "./scripts/leave.lua" with { type: "text" };
import quota from "./scripts/quota.lua" with { type: "text" };
import share from "./scripts/share.lua" with { type: "text" };
import sweep from "./scripts/sweep.lua" with { type: "text" };
import takeHold from "./scripts/take-hold.lua" with { type: "text" };
import window from "./scripts/window.lua" with { type: "text" };

/**
 * Each script is combined with the scripts whose functions it uses. The first lines of each file explain its keys,
 * arguments and result.
 */
export const limitScripts = {
  admit: common + fields + bucket + takeHold + quota + window + share + admit,
  grow: common + fields + quota + window + heldOf + share + grow,
  apply: common + fields + bucket + quota + window + late + giveBack + heldOf + apply,
  beat: common + beat,
  sweep: common + fields + quota + heldOf + sweep,
  leave: common + leave,
};
