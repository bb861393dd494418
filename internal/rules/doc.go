// Package rules is what decides in a graph, without a clock and without
// goroutines: who is a consumer of whom, what an item can need at most, when a
// queue is full, when a join has all that it pairs, and whose turn it is behind
// an ordered stage. pipeline runs these rules in real time, plan in virtual time.
//
// Nothing in it locks but Shape.Without: who shares a Queue, a Join or an Order
// between goroutines brings the lock.
package rules
