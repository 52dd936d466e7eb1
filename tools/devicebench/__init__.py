"""What device_bench.py is made of: how a device is reached (transport), what it is and what it says
while something runs (device), what is run (matrix), and the report (report, plots, page).
"""
