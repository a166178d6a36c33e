-- Common to all scripts, and first in each: the time, and the arguments that every script has.
-- ARGV: 1 the prefix of all keys, 2 the asking replica, 3 the time in microseconds in a test, else empty.
local floor, ceil, max, min = math.floor, math.ceil, math.max, math.min
local call, pack, unpacked = redis.call, cmsgpack.pack, cmsgpack.unpack
local prefix, me = ARGV[1], ARGV[2]
local micros = tonumber(ARGV[3])
if not micros then
  local time = call('TIME')
  micros = time[1] * 1000000 + time[2]
end
local now = micros / 1000
