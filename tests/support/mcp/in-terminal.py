# Runs a program as in a terminal, for those that want one; prints what it said, and ends as it did, or after so many seconds.
import os
import pty
import select
import sys
import time

deadline = time.monotonic() + float(sys.argv[1])
child, terminal = pty.fork()
if child == 0:
    os.execvp(sys.argv[2], sys.argv[2:])
while time.monotonic() < deadline:
    if select.select([terminal], [], [], 0.5)[0]:
        try:
            said = os.read(terminal, 65536)
        except OSError:
            break
        if not said:
            break
        os.write(1, said)
else:
    os.kill(child, 9)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
