"""A model that somebody else runs and charges for: a ledger, a process that is killed, and the cost of resuming.

Run it as a script, or cell by cell in an editor that knows `# %%`.
"""

# %% Somebody else's model: an HTTP server that logs every row it has answered, for the bill.
import json
import subprocess
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Thread

import acex

PRICE = 0.05
bill = []


class Bank(BaseHTTPRequestHandler):
    """Approves applicants with a sufficient score, slowly."""

    def do_POST(self):
        records = json.loads(self.rfile.read(int(self.headers["content-length"])))["instances"]
        time.sleep(0.02)
        labels = ["approved" if r["credit_score"] - 300 * r["debt_ratio"] > 640 else "rejected" for r in records]
        bill.extend(json.dumps(record) for record in records)
        answer = json.dumps({"labels": labels}).encode()
        self.send_response(200)
        self.send_header("content-length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *args):
        """Logs nothing: the bill is enough."""


server = ThreadingHTTPServer(("127.0.0.1", 0), Bank)
Thread(target=server.serve_forever, daemon=True).start()
url = f"http://127.0.0.1:{server.server_port}/score"

# %% Our side, as a program of its own: it explains one application and keeps every answer in a ledger.
PROGRAM = """
import sys, acex
url, ledger = sys.argv[1:]
bank = acex.HttpModel(url, protocol="json", request={"instances": "$records"}, labels="labels", version="7")
loans = acex.datasets.loan()
row = loans.rows.iloc[17]
e = acex.explain(bank, row, loans.rows, target="approved", freeze=["age"], budget=40, ledger=ledger)
print(e)
print(f"paid in this run: {e.n_queries}, known from the ledger: {e.n_reused}")
"""
folder = TemporaryDirectory()
ledger = str(Path(folder.name) / "answers.db")
command = [sys.executable, "-c", PROGRAM, url, ledger]

# %% It is killed in the middle, without a chance to clean up.
process = subprocess.Popen(command)
while len(bill) < 12:
    time.sleep(0.005)
process.kill()
process.wait()
paid_before = len(bill)
print(f"Killed after {paid_before} rows.\n")

# %% The same program again: it resumes where it stopped. Only a row that was in flight may be sent twice.
subprocess.run(command, check=True)
twice = len(bill) - len(set(bill))
print(f"\nThe bank's bill: {len(bill)} rows, {len(bill) * PRICE:.2f} in all; sent twice: {twice}.")

# %% And once more: all answers are in the ledger.
subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
print(f"After a third run: {len(bill)} rows.")

# %% What the ledger knows, to check the bill.
with acex.Ledger(ledger) as book:
    book.budget(book.tables.models()["model"][0], money=10, price_per_row=PRICE)
    print(book.tables.models().T.to_string(header=False), "\n")
    print(book.tables.queries(newest=5)[["label", "purpose", "attempts", "answered_at"]].to_string(index=False))

server.shutdown()
folder.cleanup()
