//! The workers: their processors, their threads, and the ports that they poll.

use std::thread;
use std::time::{Duration, Instant};

use control::config;
use graph::{Command, Handle, Port, TxPlacement, WorkerPort};
use router::{Idle, InterfaceId, Router};

/// Time to wait for workers: one that lives takes its commands every round, which is
/// microseconds, or a time slice of the kernel where others share its processor.
const PATIENCE: Duration = Duration::from_secs(1);

/// The processors of the workers: as configured, else the last ones that we may use, so that the
/// first keeps the system's work. `None`: any.
pub fn cpus(workers: &config::Workers, usable: &[usize]) -> Vec<Option<usize>> {
    if !workers.cpus.is_empty() {
        return workers.cpus.iter().map(|c| Some(usize::from(*c))).collect();
    }
    let count = usize::from(workers.count.unwrap_or(1)).max(1);
    match usable.len().checked_sub(count) {
        Some(first) => usable[first..].iter().copied().map(Some).collect(),
        None => vec![None; count],
    }
}

/// Starts a thread for each worker, on its processor.
///
/// # Errors
/// A thread cannot be started or pinned.
pub fn start(idle: Vec<Idle>, cpus: &[Option<usize>]) -> Result<Vec<Handle>, String> {
    let start = |(i, ((worker, handle), &cpu)): (usize, (Idle, &Option<usize>))| {
        let begin = move || cpu.map_or(Ok(()), kernel::cpu::pin);
        let started = worker.start(router::worker_name(i), begin, handle);
        let mut handle = started.map_err(|e| format!("worker {i}: {e}"))?;
        handle.cpu = cpu;
        Ok(handle)
    };
    idle.into_iter().zip(cpus).enumerate().map(start).collect()
}

/// Fails if a worker's thread has ended.
pub fn all_alive(workers: &mut [Handle]) -> Result<(), String> {
    for (i, worker) in workers.iter_mut().enumerate() {
        if let Some(why) = worker.death() {
            return Err(format!("run: worker {i} has died: {why}"));
        }
    }
    Ok(())
}

/// Spreads the queues of an interface over the workers; a worker without one hands its packets to
/// one that has. What the queues receive enters the graph at the node `entry`. Waits until the
/// workers have them, a second at most: what they send by the interface from then on has a port.
pub fn add_port(
    workers: &mut [Handle],
    interface: InterfaceId,
    queues: Vec<Box<dyn Port>>,
    entry: u16,
) {
    let count = workers.len();
    let serving = queues.len().min(count);
    for (i, port) in queues.into_iter().enumerate() {
        let port = Box::new(WorkerPort::new(port, interface, interface, entry));
        send(&mut workers[i % count], Command::AddPort(port));
    }
    for (i, worker) in workers.iter_mut().enumerate().skip(serving) {
        let placement = TxPlacement::Worker(i % serving.max(1));
        send(worker, Command::PlaceTx(interface, placement));
        send(worker, Command::Egress(interface, interface));
    }
    let served = |worker: &Handle| worker.has_obeyed() || !worker.alive();
    let end = Instant::now() + PATIENCE;
    while !workers.iter().all(served) && Instant::now() < end {
        // A few rounds of a worker.
        thread::sleep(Duration::from_micros(50));
    }
}

/// Takes the queues of an interface from the workers, `count` of them, and waits until they have
/// given them back, a second at most: what these hold is free when they are dropped, such as sockets
/// and names of taps.
pub fn take_back(router: &mut Router, (interface, count): (InterfaceId, usize)) -> Vec<WorkerPort> {
    let mut taken = Vec::new();
    if count == 0 {
        return taken;
    }
    for worker in &mut router.workers {
        send(worker, Command::RemovePort(interface));
    }
    let end = Instant::now() + PATIENCE;
    loop {
        let back = router.collect().into_iter().map(|port| *port);
        taken.extend(back.filter(|port| port.interface == interface));
        if taken.len() >= count || Instant::now() >= end {
            return taken;
        }
        // They come after the rounds that end the port's use.
        thread::sleep(Duration::from_micros(200));
    }
}

/// The packets of an interface leave by the port of another one.
pub fn leave_by(workers: &mut [Handle], interface: InterfaceId, port: InterfaceId) {
    for worker in workers {
        send(worker, Command::Egress(interface, port));
    }
}

/// The packets of an interface leave by no port any more.
pub fn forget(workers: &mut [Handle], interface: InterfaceId) {
    leave_by(workers, interface, 0);
}

/// Sends a command, waiting for room: a worker takes all of them once a loop.
fn send(worker: &mut Handle, mut command: Command) {
    while let Err(back) = worker.command(command) {
        if !worker.alive() {
            return;
        }
        command = back;
        thread::sleep(Duration::from_millis(1));
    }
}

#[cfg(test)]
mod tests {
    use graph::Pool;
    use graph::pool::STRIDE;
    use router::Setup;
    use router::change::{Change, Interface, Kind, Mac};

    use super::*;

    #[test]
    fn workers_are_on_processors_that_the_process_may_use() {
        let of = |count, given: &[u16]| {
            let given = given.to_vec();
            cpus(&config::Workers { count, cpus: given }, &[1, 4, 6])
        };
        assert_eq!(of(None, &[]), [Some(6)]);
        assert_eq!(of(Some(2), &[]), [Some(4), Some(6)]);
        assert_eq!(of(Some(4), &[]), [None; 4]);
        assert_eq!(of(None, &[2, 0]), [Some(2), Some(0)]);
    }

    /// A port with a defect.
    struct Broken;

    impl Port for Broken {
        fn name(&self) -> &str {
            "broken"
        }
        fn rx(&mut self, _: &mut graph::Buffers, _: &mut graph::Frame) {
            panic!("a broken port")
        }
        fn tx(&mut self, _: &mut graph::Buffers, _: &mut graph::Batch<'_>) {}
    }

    #[test]
    fn a_dead_worker_is_an_error_that_names_it() {
        let setup = Setup {
            pool: Pool::new(64, STRIDE).unwrap(),
            memory: tables::Memory::mapped(tables::Sizes::default()).unwrap(),
            workers: 2,
            flows: tables::flow::Sizes::default(),
            grace: None,
        };
        let (mut router, idle) = Router::new(setup).unwrap();
        router.attach(start(idle, &[None, None]).unwrap());
        // A port is looked at once its interface is up.
        let interface = Interface {
            id: 1,
            name: "broken".into(),
            kind: Kind::Routed { host: None },
            mac: Mac([2, 0, 0, 0, 0, 1]),
            mtu: 1500,
            up: true,
            l2: None,
            serving: true,
        };
        let set = router.apply(vec![Change::InterfaceSet(interface)]);
        assert!(set.is_ok());
        let workers = &mut router.workers;
        assert_eq!(all_alive(workers), Ok(()));
        add_port(&mut workers[1..], 1, vec![Box::new(Broken)], 0);
        let begun = Instant::now();
        while workers[1].alive() {
            assert!(begun.elapsed() < testbed::patience(Duration::from_secs(60)));
            thread::sleep(Duration::from_millis(1));
        }
        let error = all_alive(workers).unwrap_err();
        assert_eq!(error, "run: worker 1 has died: a broken port");
    }
}
