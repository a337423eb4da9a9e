#!/bin/sh
# In place of `parshall loadtest`: says what it was asked for, then samples until SIGINT.
result= report= rate=
for word in "$@"; do
    case $word in
        --json=*) result=${word#*=} ;;
        --output=*) report=${word#*=} ;;
        --rate=*) rate=${word#*=} ;;
    esac
done
echo "asked: $*" >&2
if [ "$rate" = bad ]; then
    echo "parshall: rate \`bad\`: <b>not</b> a rate" >&2
    exit 2
fi
end() {
    echo '{"sender": "live"}' >"$result"
    echo '<!DOCTYPE html><title>report</title><script>document.title = "drawn"; fetch("/api/v1/state").catch(() => document.title += ", alone")</script>' >"$report"
    exit 0
}
trap end INT
at=0
while :; do
    at=$((at + 1))
    sent=$((at * 1000)) back=$((at * 900))
    echo "{\"at\": $at.0, \"valid\": true, \"ways\": [{\"offered_pps\": 1000.0, \"tx_pps\": 1000.0, \"rx_pps\": 900.0, \"tx_bps\": 480000.0, \"rx_bps\": 432000.0, \"loss\": 0.1, \"latency\": {\"measured\": 9, \"p50\": 12000, \"p99\": 34000, \"p99_9\": 56000}, \"total\": {\"offered\": $sent, \"sent\": {\"packets\": $sent, \"bytes\": 0}, \"received\": {\"packets\": $back, \"bytes\": 0}}}]}" >&2
    sleep 0.1
done
