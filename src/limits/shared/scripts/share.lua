-- How much of what is left one answer gets at a time, where others share it, as `stop-share.ts` has it. No keys, no arguments.
local function shareOf(wanted, left, running)
  return max(0, min(wanted, max(ceil(wanted / 32), floor(left / (2 * max(1, running)))), left))
end
