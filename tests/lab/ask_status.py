#!/usr/bin/env python3
"""ask_status.py ADDRESS_FILE STOP_FILE - inside the client: requests the status of the background service twice a second until
STOP_FILE exists. ADDRESS_FILE is the service's address file (JSON). Each request prints one line of five times in seconds:
connection time; time to the last byte of the response; time in which the whole machine stood still meanwhile, measured by a
thread that wakes up every 5 ms; time in which the answering or the requesting thread (the larger value) was runnable but waited
for the only processor, from the kernel's `run_delay` (in ticks of 10 ms); and the time to start and end a trivial program right
afterwards, which shows what this machine can do."""
import json, os, socket, sys, threading, time

address, stop_file = json.load(open(sys.argv[1])), sys.argv[2]
ASK = f"GET /api/v1/status HTTP/1.1\r\nHost: 127.0.0.1:{address['port']}\r\nAuthorization: Bearer {address['token']}\r\nConnection: close\r\n\r\n"
TICK, STANDSTILL = 0.005, 0.02
standstills = []          # (start, end) in seconds
SCHEDULER_FILES = [f"/proc/{address['pid']}/task/{address['pid']}/schedstat", f"/proc/self/task/{os.getpid()}/schedstat"]

def watch_the_machine():
    before = time.monotonic()
    while True:
        time.sleep(TICK)
        now = time.monotonic()
        if now - before > STANDSTILL: standstills.append((before + TICK, now))
        before = now

def stood_still(began, ended):
    time.sleep(2 * TICK)  # wait until the watching thread has recorded a standstill in progress
    return sum(max(0, min(ended, until) - max(began, since)) for since, until in standstills)

def waited():
    return [int(open(schedstat).read().split()[1]) / 1e9 for schedstat in SCHEDULER_FILES]

def ask():
    global connected
    answer = b""
    connected = float("inf")
    with socket.create_connection(("127.0.0.1", address["port"]), timeout=60) as connection:
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
while not os.path.exists(stop_file):
    before = waited()
    began, ended = timed(ask)
    waits = max(now - then for now, then in zip(waited(), before))
    still = stood_still(began, ended)
    since, until = timed(start_a_program)
    print(f"{connected - began:.4f} {ended - began:.4f} {still:.4f} {waits:.4f} {until - since:.4f}", flush=True)
    time.sleep(0.5)
os.unlink(stop_file)
