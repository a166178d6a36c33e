// What a slow client's socket does not take at once leaves later, all of it and in order.
import { expect, test } from "bun:test";
import { ConnectionOutput } from "./connection-output.ts";
import { pieceScratch } from "./outgoing.ts";

/** A socket with room for `room` bytes. */
function slowSocket() {
  const it = {
    room: 0,
    text: "",
    write(bytes: Buffer, offset: number, length: number) {
      if (it.room < 0) return -1;
      const taken = Math.min(length, it.room);
      it.room -= taken;
      it.text += bytes.toString("latin1", offset, offset + taken);
      return taken;
    },
  };
  return it;
}

test("what is kept leaves before what is written later, also where there is room again meanwhile", () => {
  const socket = slowSocket();
  const output = new ConnectionOutput(socket);
  socket.room = 3;
  expect(output.write(Buffer.from("xxabcdexx"), 2, 7)).toBe(false);
  expect(output.behind).toBe(true);
  socket.room = 100;
  expect(output.write(Buffer.from("fgh"), 0, 3)).toBe(false);
  expect(socket.text).toBe("abc");
  socket.room = 3;
  expect(output.flush()).toBe(3);
  expect(output.behind).toBe(true);
  socket.room = 100;
  expect(output.flush()).toBe(2);
  expect([socket.text, output.behind]).toEqual(["abcdefgh", false]);
  expect(output.write(Buffer.from("i"), 0, 1)).toBe(true);
});

test("the shared buffer is copied where a part of it is kept", () => {
  const socket = slowSocket();
  const output = new ConnectionOutput(socket);
  pieceScratch.write("first", 0, "latin1");
  output.write(pieceScratch, 0, 5);
  pieceScratch.write("other", 0, "latin1");
  socket.room = 100;
  output.flush();
  expect(socket.text).toBe("first");
});

test("a closed socket holds nothing", () => {
  const socket = slowSocket();
  const output = new ConnectionOutput(socket);
  output.write(Buffer.from("abc"), 0, 3);
  socket.room = -1;
  expect(output.flush()).toBe(0);
  expect(output.behind).toBe(false);
  expect(output.write(Buffer.from("abc"), 0, 3)).toBe(true);
  expect(output.behind).toBe(false);
});
