#!/usr/bin/env python3
"""ask_status.py CONTACT ENOUGH - inside the client: asks the background service for its status, twice a second, until the
file ENOUGH is there. A line each time, in seconds: until it was connected; until the last byte of the answer; for how long this
machine stood still meanwhile, as a thread saw it that wakes up all the time; for how long the thread that answers or the one
that asks, whichever longer, was ready meanwhile and waited for the only processor, as the kernel counts it (`run_delay`, in ticks
of 10 ms); and what starting and ending a trivial program took right after, which is what this machine can do."""
import json, os, socket, sys, threading, time

contact, enough = json.load(open(sys.argv[1])), sys.argv[2]
ASK = f"GET /api/v1/status HTTP/1.1\r\nHost: 127.0.0.1:{contact['port']}\r\nAuthorization: Bearer {contact['token']}\r\nConnection: close\r\n\r\n"
TICK, STANDSTILL = 0.005, 0.02
standstills = []          # (began, ended)
WHO_TALKS = [f"/proc/{contact['pid']}/task/{contact['pid']}/schedstat", f"/proc/self/task/{os.getpid()}/schedstat"]

def watch_the_machine():
    before = time.monotonic()
    while True:
        time.sleep(TICK)
        now = time.monotonic()
        if now - before > STANDSTILL: standstills.append((before + TICK, now))
        before = now

def stood_still(began, ended):
    time.sleep(2 * TICK)  # what began in between has been seen by then
    return sum(max(0, min(ended, until) - max(began, since)) for since, until in standstills)

def waited():
    return [int(open(schedstat).read().split()[1]) / 1e9 for schedstat in WHO_TALKS]

def ask():
    global connected
    answer = b""
    connected = float("inf")
    with socket.create_connection(("127.0.0.1", contact["port"]), timeout=60) as connection:
        connected = time.monotonic()
        connection.sendall(ASK.encode())
        while part := connection.recv(1 << 16):
            answer += part
    assert answer.startswith(b"HTTP/1.1 200") and b'"state"' in answer, answer

def start_a_program():
    os.waitpid(os.posix_spawn("/bin/true", ["true"], {}), 0)

def timed(action):
    began = time.monotonic()
    try:
        action()
    except OSError as error:
        print(error, file=sys.stderr)
        return began, float("inf")
    return began, time.monotonic()

start_a_program()
threading.Thread(target=watch_the_machine, daemon=True).start()
while not os.path.exists(enough):
    before = waited()
    began, ended = timed(ask)
    waits = max(now - then for now, then in zip(waited(), before))
    still = stood_still(began, ended)
    since, until = timed(start_a_program)
    print(f"{connected - began:.4f} {ended - began:.4f} {still:.4f} {waits:.4f} {until - since:.4f}", flush=True)
    time.sleep(0.5)
os.unlink(enough)
