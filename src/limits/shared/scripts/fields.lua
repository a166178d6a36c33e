-- Where each figure of a bucket, a quota and a lease stands. All are whole numbers below 2^53, exact in Lua.
-- No keys, no arguments.
-- Fields of a bucket; those of requests end with the window.
local BACKLOG, REFILLED, LIMIT, WINDOW, LOWEST, BORN, LAST, FIRST = 1, 2, 3, 4, 5, 6, 7, 8
-- Of a place in it, from its beginning: which hold made it, its rise, how many open holds share it.
local RISE, OPEN, SIZE = 1, 2, 3
local MOST_PLACES = 128
-- Of a quota.
-- READ_AT: when the reading began, 0 where it has to be read; FORGOTTEN: 1 where it was known until then.
local USED, USED_NANO, HELD, HELD_NANO, READ_AT, USED_REQUESTS, HELD_REQUESTS, FORGOTTEN = 1, 2, 3, 4, 5, 6, 7, 8
-- Of a window that rolls: when it began and how long it is, in seconds, and what its counter is called.
local START, NAME, SPAN = 1, 2, 3
-- Of a lease; then for each token bucket key, birth and hold, then the keys of quotas that hold something for it.
local TOKENS, NANO, COUNTS, BUCKETS, REST = 1, 2, 3, 4, 5
